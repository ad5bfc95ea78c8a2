"""Whether another engine has moved a table: `main` and the columns are compared with what the ledger recorded.

`main` is ours while it is at the snapshot of the last committed version, under the columns which that was written with.
Anything else is somebody else's doing. How the table is partitioned is the other engines' to say, too: that moves no
row, and what we write next goes by it.
"""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot, ancestors_of

from lakeward.control.ledger import ways_out
from lakeward.errors import ColumnMismatch, DataError, Diverged
from lakeward.storage.arms.iceberg.scans import schema_of
from lakeward.storage.foreign_head import ForeignHead
from lakeward.storage.table import TableRef
from lakeward.types.schema import IDENTITY_COLUMNS


def head_of(loaded: Table, ours: int | None, written_with: int | None = None) -> ForeignHead | None:
    """Return what another engine did to the table, or None if `main` is as we left it.

    Args:
        loaded: the table as it is now.
        ours: the snapshot that `main` must be at.
        written_with: the snapshot whose columns the table must have; None: `ours`.
    """
    head = loaded.current_snapshot()
    found = head.snapshot_id if head is not None else None
    columns = _changed_columns(loaded, ours if written_with is None else written_with)
    if found == ours:
        return ForeignHead(found, columns, columns) if columns else None
    why = f"main of its Iceberg table is at snapshot {found}, {_relation(loaded, head, ours)}"
    return ForeignHead(
        found,
        f"{why}; {columns}" if columns else why,
        columns,
        behind=found is not None and descends(loaded, ours, found),
        lost=ours is not None and loaded.metadata.snapshot_by_id(ours) is None,
    )


def diverged(table: TableRef, loaded: Table, ours: int | None, head: ForeignHead) -> Diverged:
    """Return the error for what `head_of` found. Its fields say where `main` is, and where it should be."""
    return Diverged(
        f"dataset {table.name} has diverged: {head.why}",
        safe=f"nothing of it was touched, and reads stay at the last committed version, snapshot {ours}",
        next_step=ways_out(table.name),
        dataset=table.name,
        table=".".join(loaded.name()),
        found=head.snapshot,
        expected=ours,
    )


def refused_columns(table: TableRef, head: ForeignHead) -> ColumnMismatch:
    """Return the error of one who wants to adopt rows under other columns."""
    return ColumnMismatch(
        f"dataset {table.name}: snapshot {head.snapshot} can't be adopted: {head.columns}",
        safe="nothing was changed",
        next_step=f"`lakeward ledger restore {table.name}` brings back our columns and rows",
        dataset=table.name,
        snapshot=head.snapshot,
    )


def refused_rows(table: TableRef, unsound: str) -> DataError:
    """Return the error of one who wants to adopt rows without a sound identity as they are."""
    return DataError(
        f"dataset {table.name}: the rows of the other engine can't be adopted as they are: {unsound}",
        safe="nothing was changed",
        next_step=f"`lakeward ledger adopt {table.name} --renumber` gives those rows a fresh identity, "
        f"`lakeward ledger restore {table.name}` brings back ours",
        dataset=table.name,
    )


def descends(loaded: Table, snapshot: int | None, ancestor: int | None) -> bool:
    """Say whether a snapshot is `ancestor`, or goes on from it."""
    start = loaded.metadata.snapshot_by_id(snapshot) if snapshot is not None else None
    return any(each.snapshot_id == ancestor for each in ancestors_of(start, loaded.metadata))


def has_columns_of_table(loaded: Table, snapshot: int) -> bool:
    """Say whether a snapshot was written under the columns that the table has now."""
    found = loaded.metadata.snapshot_by_id(snapshot)
    return found is not None and _columns(schema_of(loaded, found)) == _columns(loaded.schema())


def _relation(loaded: Table, head: Snapshot | None, ours: int | None) -> str:
    after: list[str] = []
    for each in ancestors_of(head, loaded.metadata):
        if each.snapshot_id == ours:
            return f"after ours, {ours}, by {', '.join(reversed(after))}"
        after.append(each.summary.operation.value if each.summary is not None else "an unknown operation")
    if head is not None and descends(loaded, ours, head.snapshot_id):
        return f"set back from ours, {ours}"
    return f"which does not go on from ours, {ours}"


def _changed_columns(loaded: Table, ours: int | None) -> str | None:
    snapshot = loaded.metadata.snapshot_by_id(ours) if ours is not None else None
    if snapshot is None:
        return None
    before, now = _columns(schema_of(loaded, snapshot)), _columns(loaded.schema())
    if before == now:
        return None
    # Identity columns that rows had none of before are ours to add.
    if not any(name in IDENTITY_COLUMNS for _, name, *_ in before):
        now = {each for each in now if each[1] not in IDENTITY_COLUMNS}
        if before == now:
            return None
    changed = [name for _, name, *_ in (*sorted(before - now), *sorted(now - before))]
    return (
        f"another engine has changed columns of its Iceberg table: {', '.join(dict.fromkeys(changed)) or 'their order'}"
    )


def _columns(schema: Schema) -> set[tuple[int, str, str, bool]]:
    return {(field.field_id, field.name, str(field.field_type), field.required) for field in schema.fields}
