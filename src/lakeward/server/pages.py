"""Pages of rows: each goes on behind the last row of the one before, in the same version."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakeward.errors import UsageError
from lakeward.sources.formats.json_export import json_objects
from lakeward.types.schema import IDENTITY_COLUMNS, ROW_INDEX
from lakeward.wiring.dataset import Dataset

LARGEST = 2**63 - 1
"""Of the numbers that versions and positions of rows can have."""


@dataclass(frozen=True)
class Cursor:
    """Where a page begins.

    Args:
        version: of the rows; None: the newest.
        after: the `__row_index` of the row before; None: at the first row.
    """

    version: int | None
    after: int | None

    @classmethod
    def read(cls, text: str, version: int | None) -> Cursor:
        """Return what `next` of a page says.

        Args:
            text: of `next`.
            version: what else was asked for; None: nothing.

        Raises:
            UsageError: it is none, or of another version.
        """
        first, _, second = text.partition(".")
        if not (_is_number(first) and _is_number(second)):
            raise UsageError(f"{text!r} is no page", next_step="pass on what `next` of the page before says", page=text)
        if version is not None and version != int(first):
            raise UsageError(f"the page {text} is one of version {first}, not of {version}", page=text)
        return cls(int(first), int(second))

    def __str__(self) -> str:
        return f"{self.version}.{self.after}"


def page_of(
    dataset: Dataset,
    cursor: Cursor,
    most: int,
    *,
    columns: Sequence[str] | None,
    where: str | None,
    since: int | None,
    identity: bool,
) -> str:
    """Return a page as JSON.

    Args:
        dataset: whose rows.
        cursor: where it begins.
        most: rows at most.
        columns, where, since, identity: as in `Dataset.read`.

    Raises:
        SqlError, SchemaError, UnknownVersion: as `Dataset.read`.
    """
    version = dataset.version if cursor.version is None else cursor.version
    # One more than is sent tells whether a page follows. Of version 0 there are no rows, but columns.
    wanted = most + 1 if version else 0
    found = dataset.preview(wanted, where, version or None, True, since, columns=columns, after=cursor.after)
    following = None
    if found.num_rows > most:
        found = found.slice(0, most)
        following = str(Cursor(version, found[ROW_INDEX][-1].as_py()))
    if not identity:
        found = found.drop_columns([name for name in found.column_names if name in IDENTITY_COLUMNS])
    types = {column.name: column.type for column in dataset.schema.columns}
    rows = [text for batch in found.to_batches() for text in json_objects(batch, types).to_pylist()]
    # Put together as text: a JSON writer would take numbers for floats.
    head: dict[str, Any] = {"dataset": dataset.name, "version": version}
    return f'{json.dumps(head)[:-1]}, "rows": [{",".join(rows)}], "next": {json.dumps(following)}}}'


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST)) and int(text) <= LARGEST
