"""Which formats of Iceberg tables can be written. Newer ones can be read, and are refused before anything is made."""

from __future__ import annotations

from pyiceberg.table import Table

from lakeward.errors import StorageError

NEWEST_FORMAT = 2
"""PyIceberg 0.12 writes no metadata of format 3. And rows are deleted by deletion vectors there: position delete files
must not be added any more."""


def refuse_format(table: Table, what: str | None = None) -> None:
    """Refuse to write to a table of a format that can be read only.

    Args:
        table: as it was loaded.
        what: names its dataset; None: it is not known here.

    Raises:
        StorageError: it is of a newer format.
    """
    version = table.metadata.format_version
    if version > NEWEST_FORMAT:
        raise StorageError(
            f"the Iceberg table {'.'.join(table.name())}{f' of {what}' if what is not None else ''} is of format "
            f"{version}, which another engine has given it; formats up to {NEWEST_FORMAT} can be written",
            safe="nothing was written, and it can be read as before",
            next_step="`lakeward dataset export` its rows, and import them into a new dataset",
            format_version=version,
        )
