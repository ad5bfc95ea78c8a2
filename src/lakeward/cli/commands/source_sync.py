"""`lakeward source sync`: tables of a source into datasets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from lakeward.cli.columns import parse_columns, parse_names
from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_create import ArmOption, ColumnOption, ColumnsOption
from lakeward.cli.commands.dataset_import import MaxRejectedOption, OnErrorOption
from lakeward.cli.commands.source_add import SourceArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import counted, table
from lakeward.control.routes import check_arm

if TYPE_CHECKING:
    from lakeward.wiring.syncing import TableSynced

TablesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TABLE…]", help="Tables of the source; none: those that it was added with.", show_default=False
    ),
]
ModeOption = Annotated[
    str, typer.Option("--mode", metavar="MODE", help="full: every row. incremental: what changed. append: new rows.")
]
IntoOption = Annotated[
    str | None,
    typer.Option("--into", metavar="CATALOG.SCHEMA", help="Where the datasets are; none: main and the source's name."),
]
KeyOption = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="COLUMN", help="A key column of a new dataset; repeat it. None: the table's key."),
]
TextOption = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="COLUMN",
        help="Read a column of a new dataset as the source prints it (TABLE.COLUMN); repeat.",
    ),
]
ExcludeOption = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="TABLE", help="Leave a table of the source out; repeat it.")
]
CursorOption = Annotated[
    str | None,
    typer.Option(
        "--cursor", metavar="COLUMN", help="Find new rows by this column, as of a view. Needs a key and --lag."
    ),
]
LagOption = Annotated[
    str | None,
    typer.Option(
        "--lag", metavar="LAG", help="How far behind a row's --cursor may be when it comes: '1 hour', 1000, 0."
    ),
]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run", metavar="NAME", help="Sync each table for itself; repeated, leave out what this run has done."
    ),
]
EmptyOption = Annotated[
    bool, typer.Option("--allow-empty", help="Let a table that lost all its rows empty its dataset.")
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Let full take away what others have written to the dataset.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "sync")(sync)


def sync(
    session: Session,
    name: SourceArgument,
    tables: TablesArgument = None,
    mode: ModeOption = "full",
    into: IntoOption = None,
    key: KeyOption = None,
    text: TextOption = None,
    exclude: ExcludeOption = None,
    columns: ColumnsOption = None,
    column: ColumnOption = None,
    arm: ArmOption = None,
    cursor: CursorOption = None,
    lag: LagOption = None,
    run: RunOption = None,
    on_error: OnErrorOption = "refuse",
    max_rejected: MaxRejectedOption = None,
    allow_empty: EmptyOption = False,
    overwrite: OverwriteOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Bring tables into datasets, all at once or none.

    All are read at one moment of the source.

    full reads every row: with a key, rows that are the same stay as they are and those that are gone are deleted;
    without one, the dataset is replaced. incremental reads the rows that were written since the last sync and updates
    them by the key; rows that were deleted stay. append reads new rows only, each once. No row is left out whose
    transaction was still running: it comes with the next sync. How far a table was read is decided with its rows.

    A dataset is named as its table and made if it is missing. Its types are those of docs/sources.md; a value that its
    type can't hold is refused with key and column, and every dataset stays as it was.

    With --run, each table has a moment and a version of its own. One that fails keeps no other from being synced; and
    when the command is repeated with the same name, also after a crash, tables that are done are left out.

    Of files, full reads all of them; incremental and append read those that are new, and one that was changed again
    where rows have a key. Which files were read is decided with their rows. Types of a new dataset are those that a
    full scan of all files finds, but for columns that are declared. With --on-error quarantine, records that can't be
    taken go to DATASET__rejected, visible together with the rows, and hold nothing up.
    """
    check_arm(arm)
    heavy("lakeward.wiring.sync_modes").sync_mode(mode)
    plan = heavy("lakeward.wiring.sync_plan")
    request = plan.SyncRequest(
        source=name,
        tables=tables or [],
        mode=mode,
        into=into,
        key=parse_names(key or []),
        text=parse_names(text or []),
        exclude=parse_names(exclude or []),
        columns=parse_columns(columns, column or []),
        arm=arm,
        allow_empty=allow_empty,
        cursor=cursor,
        lag=lag,
        run=run,
        overwrite=overwrite,
        on_error=on_error,
        max_rejected=max_rejected,
    )
    if dry_run:
        with session.workspace() as workspace:
            plans = workspace.sources.plan_sync(request, session.progress)
        actions = [action for each in plans for action in each.actions()]
        session.show_actions(actions, "the same command without --dry-run")
        return
    started = time.monotonic()
    with session.workspace() as workspace:
        synced = workspace.sources.sync(request, session.progress)
    seconds = time.monotonic() - started
    rows = sum(each.rows_read for each in synced if not each.written.repeated)
    rejected = sum(each.rows_rejected for each in synced)
    became = f"{counted(rows, 'row')} written{f' + {rejected:,} rejected' if rejected else ''}"
    done = sum(each.written.repeated for each in synced)
    lines: list[RenderableType] = [
        _table(synced),
        f"{counted(rows + rejected, 'row')} read{_of_files(synced)} = {became}, in {seconds:.1f} s",
        *([f"{counted(done, 'table')} of run {run} done before, and not read again"] if done else []),
        *(f"what was rejected, and why: dataset {each.rejected_to}" for each in synced if each.rejected_to is not None),
        *(f"left for the next sync: {each}" for table in synced for each in table.left),
        *(f"warning: {each.written.dataset}: {told}" for each in synced for told in each.written.warnings),
    ]
    document = {"source": name, "seconds": round(seconds, 3), "datasets": [each.to_json() for each in synced]}
    session.show(document, lines, [lakeward("dataset", "preview", each.written.dataset) for each in synced[:1]])


def _of_files(synced: list[TableSynced]) -> str:
    files = sum(len(each.files) for each in synced)
    return f" of {counted(files, 'file')}" if files else ""


def _table(synced: list[TableSynced]) -> RenderableType:
    columns = ("table", "dataset", "read", "added", "updated", "unchanged", "skipped", "deleted", "version")
    rows = [
        (
            each.table,
            each.written.dataset,
            each.rows_read,
            each.written.rows_added,
            each.written.rows_updated,
            each.written.rows_unchanged,
            each.written.rows_skipped,
            each.written.rows_deleted,
            each.written.version,
        )
        for each in synced
    ]
    return table(columns, rows, columns[2:])
