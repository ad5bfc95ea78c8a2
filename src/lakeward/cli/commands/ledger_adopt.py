"""`lakeward ledger adopt`: another engine's rows become a new version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import DryRunOption
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import counted

if TYPE_CHECKING:
    from lakeward.storage.foreign import ForeignState

SnapshotOption = Annotated[
    int | None,
    typer.Option(
        "--snapshot", metavar="ID", help="Only if the table is still at this snapshot, as --dry-run shows it."
    ),
]


def expected(snapshot: int | None) -> list[str]:
    """Return the option that names the snapshot again, if it was given."""
    return [] if snapshot is None else ["--snapshot", str(snapshot)]


def adopt(
    session: Session,
    dataset: DatasetArgument,
    renumber: Annotated[
        bool,
        typer.Option(
            "--renumber",
            help="Write the rows anew: those without an identity of their own get a fresh one, changed ones the new "
            "version.",
        ),
    ] = False,
    snapshot: SnapshotOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Take another engine's rows as a new version.

    The rows that it left in the dataset's Iceberg table must have our columns, and identity columns that are sound, or
    be given such with --renumber. A dataset to which no other engine wrote stays as it is.
    """
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        if dry_run:
            state = handle.foreign(survey=True)
            options = [*(["--renumber"] if renumber else []), *expected(snapshot)]
            again = lakeward("ledger", "adopt", handle.name, *options)
            session.show_actions(_actions(state, renumber) if state else [], again)
            return
        result = handle.adopt(renumber=renumber, snapshot=snapshot)
    line = f"no other engine has written to {result.dataset}: it stays at version {result.version}"
    if result.committed:
        counts = (
            f"{result.rows_added:,} added, {result.rows_updated:,} updated, {result.rows_deleted:,} deleted, "
            f"{result.rows_unchanged:,} unchanged"
        )
        line = f"{result.dataset} is at version {result.version} with {counted(result.row_count, 'row')}: {counts}"
    session.show(result.to_json(), [line], [lakeward("dataset", "history", result.dataset)] if result.committed else [])


def _actions(state: ForeignState, renumber: bool) -> list[str]:
    """Return what adopting would do, or why it would not."""
    if state.survey is None or (state.refusal is not None and not renumber):
        hint = "; --renumber gives those rows a fresh identity" if state.renumbers else ""
        return [f"refuse: {state.why}; {state.refusal}{hint}"]
    rows = state.survey
    counts = f"{rows.added:,} added, {rows.updated:,} updated, {rows.unchanged:,} unchanged; {rows.deleted:,} deleted"
    actions = [f"take snapshot {state.found} of {state.dataset} with {counted(rows.rows, 'row')}: {counts}"]
    if renumber:
        actions.append(
            f"write them anew, with a sound identity for {rows.nulls + rows.repeated + rows.beyond:,} rows, and the "
            "new version in every row that was added or updated"
        )
    elif rows.unstamped:
        actions.append(
            f"leave {rows.unstamped:,} added or updated rows under the version that they name: reading since version "
            f"{state.version} misses them, unless --renumber writes them anew"
        )
    actions.append(f"commit a new version of {state.dataset} after version {state.version}, and allow writes again")
    return actions
