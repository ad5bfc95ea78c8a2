"""An edit by hand as rows to be looked at before it is applied."""

from __future__ import annotations

from collections.abc import Sequence

from lakeward.server.web.change_rows import ChangedRow
from lakeward.server.web.grid import GridColumn, grid, shortened
from lakeward.wiring.edit_diff import Edit


def changed_rows(edit: Edit) -> tuple[Sequence[GridColumn], list[ChangedRow]]:
    """Return the columns, and the rows that an edit adds, changes and removes, with the cells before."""
    schema = edit.base.schema
    types = {column.name: column.type for column in schema.columns}
    columns = grid(edit.base.table.select(schema.names).slice(0, 0), types, schema.primary_key).columns
    rows = []
    for before, after in edit.changed:
        old, new = _cells(edit.base.texts[before]), _cells(edit.edited.texts[after])
        rows.append(ChangedRow("update", new, old, [a != b for a, b in zip(old, new, strict=True)]))
    for what, texts in (
        ("insert", [edit.edited.texts[row] for row in edit.added]),
        ("delete", [edit.base.texts[row] for row in edit.removed]),
    ):
        rows += [ChangedRow(what, _cells(each), _cells(each), [False] * len(each)) for each in texts]
    return columns, rows


def _cells(texts: Sequence[str | None]) -> list[str | None]:
    return [shortened(each) for each in texts]
