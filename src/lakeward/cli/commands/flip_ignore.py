"""`lakeward flip ignore`: differences between the arms that are known and accepted for a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import table

ColumnOption = Annotated[str, typer.Option("--column", metavar="NAME", show_default=False, help="Which column.")]
ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", show_default=False, help="Why.")]
UntilOption = Annotated[
    datetime,
    typer.Option(
        "--until",
        formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M"],
        show_default=False,
        help="When they count again, in UTC; of a day, its beginning.",
    ),
]
OwnerOption = Annotated[
    str | None, typer.Option("--owner", metavar="NAME", show_default=False, help="Who says so; none: you.")
]


def register(group: typer.Typer) -> None:
    """Add the group."""
    rules = typer.Typer(help="Differences in a column that are accepted for a time.", no_args_is_help=True)
    for name, run in (("add", add), ("list", list_rules), ("remove", remove)):
        command(rules, name)(run)
    group.add_typer(rules, name="ignore")


def add(
    session: Session,
    dataset: DatasetArgument,
    column: ColumnOption,
    reason: ReasonOption,
    until: UntilOption,
    owner: OwnerOption = None,
) -> None:
    """Accept differences between the arms in a column.

    Comparisons of all rows count them apart and don't fail by them, until the day. Rows that are missing on an arm, or
    are there twice, are never accepted. A rule that the column has already is replaced.
    """
    with session.workspace() as workspace:
        rule = workspace.comparisons.ignore(
            dataset, column, reason=reason, until=until.replace(tzinfo=UTC), owner=owner
        )
    line = f"differences in {rule.column} are accepted until {rule.until:%Y-%m-%d %H:%M} UTC: {rule.reason}"
    session.show(rule.to_json(), [line], [lakeward("verify", dataset)])


def list_rules(session: Session, dataset: DatasetArgument) -> None:
    """List the rules of a dataset, also those that have expired."""
    with session.workspace() as workspace:
        rules = workspace.comparisons.rules(dataset)
    rows = [
        (
            each.column if each.column is not None else "(dropped)",
            f"{each.until:%Y-%m-%d %H:%M}",
            "expired" if each.expired else "in force",
            each.owner,
            each.reason,
        )
        for each in rules
    ]
    lines = [table(("column", "until", "", "owner", "reason"), rows)] if rows else ["there are no rules"]
    session.show({"rules": [each.to_json() for each in rules]}, lines)


def remove(session: Session, dataset: DatasetArgument, column: ColumnOption) -> None:
    """Let the differences in a column count again."""
    with session.workspace() as workspace:
        workspace.comparisons.count_again(dataset, column)
    session.show({"dataset": dataset, "column": column}, [f"differences in {column} count again"])
