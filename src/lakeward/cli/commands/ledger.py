"""`lakeward ledger`: the transactions of every dataset, and finishing what dead processes left."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.history_table import history_table
from lakeward.cli.commands.ledger_adopt import adopt
from lakeward.cli.commands.ledger_drill import drill
from lakeward.cli.commands.ledger_restore import restore
from lakeward.cli.session import Session

MostOption = Annotated[int, typer.Option("--most", min=1, help="At most so many.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="The ledger of transactions.", no_args_is_help=True)
    command(group, "list")(list_transactions)
    command(group, "recover")(recover)
    command(group, "adopt")(adopt)
    command(group, "restore")(restore)
    command(group, "drill")(drill)
    app.add_typer(group, name="ledger")


def list_transactions(
    session: Session,
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="open, committed or aborted; none: all.")] = None,
    most: MostOption = 100,
) -> None:
    """List transactions of all datasets, newest first."""
    if status not in (None, "open", "committed", "aborted"):
        raise typer.BadParameter(f"there is no status {status!r}; there are open, committed and aborted")
    with session.workspace() as workspace:
        found = workspace.transactions(status=status, most=most)
    lines = [history_table(found, dataset=True)] if found else ["no transactions"]
    session.show({"transactions": [each.to_json() for each in found]}, lines)


def recover(session: Session, dry_run: DryRunOption = False) -> None:
    """Finish or remove what processes that died left behind. Repeating it does nothing more."""
    with session.workspace() as workspace:
        if dry_run:
            actions = [left.explain() for left in workspace.recoverable() if not left.held]
            session.show_actions(actions, "lakeward ledger recover")
            return
        done = workspace.recover()
    lines = [f"{each.dataset} version {each.version}: {each.outcome}" for each in done] or ["nothing to recover"]
    session.show({"recovered": [dict(vars(each)) for each in done]}, lines, ["lakeward status"] if done else [])
