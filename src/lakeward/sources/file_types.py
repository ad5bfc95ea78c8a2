"""The types that the columns of files get: those that were declared, and for the others those that a scan finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakeward.errors import ColumnMismatch
from lakeward.sources.file_set import FileSet


def are_all(declared: Mapping[str, str], files: FileSet) -> bool:
    """Tell whether nothing is to be found, because every column of the files is declared.

    False also where that can't be told before the files are read: those without a header.

    Raises:
        ColumnMismatch: a file has not a column that is declared.
        SchemaError: a type text is wrong, or the format can't hold the type.
        SourceFileError: a file is not what it claims to be.
    """
    if not declared or not files.format.names_first:
        return False
    try:
        files.read(declared)
    except ColumnMismatch as error:
        if not error.fields["missing"]:
            return False
        error.next_step = "declare columns that the files have; the types of those that are not declared are found"
        raise
    return True


def with_declared(found: Mapping[str, str], declared: Mapping[str, str], files: FileSet) -> dict[str, str]:
    """Return the types of all columns: the declared ones, and those found of the others.

    Args:
        found: what a scan has proposed, in the files' order.
        declared: by column. Where every one is declared, in this order.
        files: that were scanned.

    Raises:
        ColumnMismatch: a declared one is not there; where rows may lack columns, it is null in each of them.
    """
    missing = [name for name in declared if name not in found]
    if missing and files.format.names_first:
        raise ColumnMismatch(
            f"{files}: there is no column {', '.join(map(repr, missing))}, which is declared; "
            f"there are {', '.join(found)}",
            safe="nothing was changed",
            next_step="declare columns that the files have",
            missing=missing,
            unexpected=[],
        )
    return dict(declared) if found.keys() <= declared.keys() else {**found, **declared}


def as_text(columns: Mapping[str, str], text: Sequence[str], what: object) -> dict[str, str]:
    """Return the types of columns, of which some are text whatever they look like.

    Raises:
        ColumnMismatch: one of these is not there.
    """
    missing = [name for name in text if name not in columns]
    if missing:
        raise ColumnMismatch(
            f"{what}: there is no column {', '.join(map(repr, missing))} to be read as text; "
            f"there are {', '.join(columns)}",
            safe="nothing was changed",
            next_step="name columns that are there: --text NAME",
            missing=missing,
            unexpected=[],
        )
    return {name: "string" if name in text else type_ for name, type_ in columns.items()}
