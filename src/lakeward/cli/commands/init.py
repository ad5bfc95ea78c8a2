"""`lakeward init`: a small project that works."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.packaged_files import packaged_files, write_files
from lakeward.cli.session import Session
from lakeward.errors import UsageError

NEXT_STEPS = (
    "lakeward dataset import shop.raw.orders data/orders.csv --key order_id",
    "lakeward apply",
    "lakeward build",
    "lakeward dataset preview shop.analytics.revenue_by_country",
)
"""What makes the example run; a test runs it."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "init")(init)


def init(
    session: Session,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.", show_default=False)],
    dry_run: DryRunOption = False,
) -> None:
    """Write a small project that works.

    Settings, example pipelines with their data, and a README that says what to run.

    Files that are there already are kept if they are the same, and nothing is written if one differs.
    """
    wanted = {directory / path: content for path, content in packaged_files("example_project").items()}
    missing = [path for path in wanted if not path.exists()]
    differing = [path for path, content in wanted.items() if path.exists() and _content(path) != content]
    if differing:
        raise UsageError(
            f"{differing[0]} is there already, and is another file",
            safe="nothing was written",
            next_step="name a new folder: lakeward init DIR",
            path=str(differing[0]),
        )
    if dry_run:
        session.show_actions([f"write {path}" for path in missing], lakeward("init", directory))
        return
    write_files({path: wanted[path] for path in missing})
    lines = [f"wrote {path}" for path in missing] or [f"{directory} has the example project already; nothing to do"]
    moved = [] if directory.absolute().samefile(Path()) else [f"cd {shlex.quote(str(directory))}"]
    steps = [*moved, *NEXT_STEPS] if missing else []
    session.show({"directory": str(directory), "written": [str(path) for path in missing]}, lines, steps)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
