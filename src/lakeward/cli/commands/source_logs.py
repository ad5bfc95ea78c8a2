"""`lakeward source logs`: the logs of changes that sources keep for this workspace."""

from __future__ import annotations

import typer
from rich.console import RenderableType

from lakeward.cli.command import command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import table

_COLUMNS = ("source", "mode", "log", "table", "dataset", "lag bytes", "active", "lost", "last change")


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "logs")(logs)


def logs(session: Session) -> None:
    """Show what is followed, and how far.

    What each source keeps of its log for this workspace, and up to when each table is here.

    A source keeps its log until it was read, so that its disk fills up while nobody follows. Above the setting
    sources.lag_limit_bytes that is warned of, here and by `lakeward doctor`.
    """
    with session.workspace() as workspace:
        states = workspace.sources.followed()
    rows: list[tuple[object, ...]] = []
    documents, warnings, steps = [], [], []
    for each in states:
        source, log = each.followed.source, each.log
        told = (
            (log.name, log.lag_bytes, "yes" if log.active else "no", "yes" if log.lost else "no")
            if log is not None
            else (
                each.followed.label,
                None,
                "not known" if each.trouble else "no",
                "not known" if each.trouble else "no",
            )
        )
        for relation, dataset in zip(each.tables, each.datasets, strict=True):
            at = relation.at.strftime("%Y-%m-%d %H:%M:%S") if relation.at is not None else ""
            rows.append((source, each.followed.mode, told[0], relation.relation, dataset, *told[1:], at))
        if each.warning is not None:
            warnings.append(f"warning: source {source}: {each.warning}")
            steps.append(lakeward("source", "unfollow" if log is not None and log.lost else "follow", source))
        documents.append(
            {
                "source": source,
                "mode": each.followed.mode,
                "log": None if log is None else {**vars(log), "tables": list(log.tables)},
                "trouble": each.trouble,
                "warning": each.warning,
                "tables": [
                    {**vars(relation), "dataset": dataset, "at": relation.at.isoformat() if relation.at else None}
                    for relation, dataset in zip(each.tables, each.datasets, strict=True)
                ],
            }
        )
    lines: list[RenderableType] = [table(_COLUMNS, rows, ("lag bytes",)) if rows else "nothing is followed", *warnings]
    session.show({"logs": documents}, lines, steps)
