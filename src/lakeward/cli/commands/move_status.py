"""`lakeward move status`: where every Iceberg table is, since when, and how it came there."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import typer
from rich.console import RenderableType

from lakeward.cli.command import command
from lakeward.cli.commands.move_names import NamesArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import counted, table

if TYPE_CHECKING:
    from lakeward.control.table_places import TablePlace


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "status")(status)


def status(session: Session, names: NamesArgument = None) -> None:
    """Show where Iceberg tables are.

    Name, snapshot, since when and by which way. Then how many are in each namespace, and how many were before anything
    was moved; and moves that are under way.
    Postgres knows that: the catalog is not asked.
    """
    with session.workspace() as workspace:
        found = workspace.moves.status(*(names or ()))
    lines: list[RenderableType] = []
    if found.tables:
        rows = [_row(each.dataset, each.place) for each in found.tables]
        lines += [table(("dataset", "table", "snapshot", "since (UTC)", "how"), rows, ("snapshot",)), ""]
        counts = [(name, before, now) for name, (before, now) in found.namespaces.items()]
        lines.append(table(("namespace", "tables before any move", "now"), counts, ("tables before any move", "now")))
    else:
        lines.append("no Iceberg tables")
    lines += [f"{each.dataset}: a move to {each.place.going} is under way" for each in found.under_way]
    away = [each for each in found.tables if not each.at_home]
    if away:
        lines.append(f"{counted(len(away), 'table')} not where the dataset's name says")
    steps = ["lakeward ledger recover"] if found.under_way else []
    session.show(found.to_json(), lines, [*steps, *([lakeward("move", "plan", *(names or ()))] if away else [])])


def _row(dataset: str, place: TablePlace) -> tuple[object, ...]:
    since = f"{place.since.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if place.since is not None else None
    return dataset, place.identifier, place.snapshot_id, since, place.way
