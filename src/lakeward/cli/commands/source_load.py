"""`lakeward source load`: a source or resource of dlt into datasets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from lakeward.cli.command import command
from lakeward.cli.commands.dataset_create import ArmOption
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import counted, table
from lakeward.control.routes import check_arm

CallArgument = Annotated[
    str,
    typer.Argument(metavar="FILE.py:FUNCTION", help="A function that returns it; the file is run.", show_default=False),
]
IntoOption = Annotated[
    str, typer.Option("--into", metavar="CATALOG.SCHEMA", help="Where the datasets are.", show_default=False)
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "load")(load)


def load(session: Session, call: CallArgument, into: IntoOption, arm: ArmOption = None) -> None:
    """Run a source or resource of dlt into datasets.

    All of its tables become visible at once, or none.

    The file is Python code that runs here with all of your rights: run none that you would not start yourself. What its
    function returns says which tables there are and how they are written: append, replace or merge. A dataset is named
    as its table and made if it is missing. Up to where dlt has read is kept with the rows; what was extracted and could
    not be loaded is loaded first. Needs `pip install 'lakeward[dlt]'`. Nothing is sent to dlt's makers.
    """
    check_arm(arm)
    room = heavy("lakeward.dlt.running")
    started = time.monotonic()
    with session.workspace(make=True) as workspace:
        data = heavy("lakeward.dlt.code").called(call, Path.cwd())
        loaded = room.load(workspace, data, into, arm=arm)
    seconds = time.monotonic() - started
    rows = sorted(loaded.rows.items())
    packages = counted(len(loaded.load_ids), "package")
    lines: list[RenderableType] = [
        table(("table", "rows"), rows, ("rows",)),
        f"{counted(sum(loaded.rows.values()), 'row')} in {packages}, in {seconds:.1f} s",
    ]
    document = {"into": into, "seconds": round(seconds, 3), **loaded.to_json()}
    session.show(document, lines, [lakeward("dataset", "preview", f"{into}.{name}") for name, _ in rows[:1]])
