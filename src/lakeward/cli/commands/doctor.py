"""`lakeward doctor`: is the installation sound, and where does each setting come from?"""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli import served
from lakeward.cli.command import command
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import table

Probe = Annotated[
    bool, typer.Option("--probe", help="Try what the Iceberg catalog can do, on a scratch table that is gone after.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "doctor")(doctor)


def doctor(session: Session, probe: Probe = False) -> None:
    """Examine the installation and the settings.

    Versions, platform, database, warehouse, catalog, and each setting with its source. Exit code 1 if something is
    broken.
    """
    loaded = served.now.settings if served.now is not None else None
    examination = heavy("lakeward.wiring.doctor").examine(
        session.flags, session.settings_file, probe=probe, loaded=loaded
    )
    broken = [check for check in examination.checks if not check.ok]
    lines = [f"{'ok    ' if check.ok else 'BROKEN'} {check.name}: {check.detail}" for check in examination.checks]
    settings = [(each.name, each.value, each.source) for each in examination.settings]
    steps = [check.next_step for check in broken if check.next_step]
    tail = [table(("setting", "value", "from"), settings)] if settings else []
    session.show(examination.to_json(), [*lines, *tail], steps)
    if broken:
        raise typer.Exit(1)
