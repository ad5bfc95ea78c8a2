"""`lakeward demo`: the main job on real data, in about a minute; `lakeward.cli.demo` has its steps."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.build_progress import shown_to_the_end
from lakeward.cli.command import DryRunOption, command
from lakeward.cli.demo import STEPS, Demo
from lakeward.cli.demo_data import data_files
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import OutputFormat, Session, heavy
from lakeward.cli.temporary_home import temporary_home
from lakeward.errors import UsageError

if TYPE_CHECKING:
    from lakeward.wiring.workspace import Workspace

_ELSEWHERE = ("LAKEWARD_DATABASE_URL", "LAKEWARD_WAREHOUSE", "LAKEWARD_CATALOG__")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "demo")(demo)


def demo(
    session: Session,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the temporary workspace; --home keeps its own.")] = False,
    serve: Annotated[
        bool | None,
        typer.Option("--serve/--no-serve", help="Serve it at the end, until Ctrl-C; default: on a terminal."),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Show the main job on real data, in about a minute.

    Flights of New York: from CSV files through SQL pipelines into Postgres rows and Iceberg tables. December arrives
    late: first with a mistake, which an expectation keeps out, then mended, and only what is new is built. A dataset is
    flipped from Postgres to Iceberg, back, and to Iceberg again, while its pipeline writes it and a reader reads it.

    At the end, on a terminal, the workspace is served: open the URL in a browser; Ctrl-C ends it.

    Without --home it works in a temporary directory, which is removed at the end. Repeated with the same --home, it
    does nothing twice.
    """
    data = data_files()
    if dry_run:
        where = f"in {session.home}" if session.home else "in a temporary directory, which is removed at the end"
        again = lakeward("demo", *(["--home", session.home] if session.home else []))
        session.show_actions([f"open a workspace {where}", *(step.does for step in STEPS)], again)
        return
    started = time.monotonic()
    text = session.output is OutputFormat.text
    served = text and (sys.stdout.isatty() if serve is None else serve)
    with _directory(session.home, keep) as home:
        session.say(f"workspace    {home}")
        opened = time.monotonic()
        with heavy("lakeward.wiring.opening").open_workspace(home) as workspace:
            session.say(f"             open on {workspace.database.display_url} ({time.monotonic() - opened:.1f} s)")
            demonstration = Demo(session, workspace, home, data)
            with shown_to_the_end(session):
                for step in STEPS:
                    demonstration.run(step)
            seconds = time.monotonic() - started
            if served:
                session.say(f"done in {seconds:.0f} s")
                _serve(session, workspace)
        _show(session, demonstration, seconds, kept=keep or session.home is not None)


def _show(session: Session, demonstration: Demo, seconds: float, *, kept: bool) -> None:
    document = {
        "home": str(demonstration.home) if kept else None,
        "seconds": round(seconds, 1),
        "steps": demonstration.facts,
        "iceberg": demonstration.iceberg,
    }
    lines = [f"done in {seconds:.0f} s. The server is stopped; nothing is left running."]
    if kept:
        lines += ["", "The Iceberg table opens without Lakeward, in Python:", *demonstration.opening_lines(), ""]
    else:
        lines.append("The temporary workspace is removed now; with --home DIR it stays.")
    session.show(document, lines, demonstration.next_steps(kept))


def _serve(session: Session, workspace: Workspace) -> None:
    """Serve the workspace until Ctrl-C; without what that needs, say how to get it."""
    try:
        serving = heavy("lakeward.server.serving")
    except ModuleNotFoundError as error:
        session.say(f"serve        not now: {error.name} is missing; pip install 'lakeward[server]'")
        return
    # A port of its own: the usual one may be a server's that works.
    settings = workspace.settings.values.server.model_copy(update={"port": 0})
    serving.serve(workspace, settings, lambda url: session.say(f"serve        open {url} in a browser; Ctrl-C ends it"))


@contextmanager
def _directory(home: Path | None, keep: bool) -> Iterator[Path]:
    """Yield the workspace directory; a temporary one is removed, whatever happens."""
    if home is not None:
        yield home.expanduser().absolute()
        return
    elsewhere = [name for name in sorted(os.environ) if name.startswith(_ELSEWHERE) and os.environ[name]]
    if elsewhere:
        raise UsageError(
            f"{elsewhere[0]} is set, so that the demo would write there and not in a temporary directory",
            safe="nothing was changed",
            next_step=f"unset {elsewhere[0]}, or give --home DIR if that is meant",
            variable=elsewhere[0],
        )
    if keep:
        yield Path(tempfile.mkdtemp(prefix="lakeward-demo-"))
        return
    with temporary_home("lakeward-demo-") as temporary:
        yield temporary
