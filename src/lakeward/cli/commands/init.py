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
    name: Annotated[str, typer.Argument(metavar="DIR", help="A new or empty folder.", show_default=False)],
    dry_run: DryRunOption = False,
) -> None:
    """Write a small project that works.

    Settings, example pipelines with their data, and a README that says what to run.

    Files that are there already are kept if they are the same, and nothing is written if one differs.
    """
    if not name.strip():
        # As of a shell variable that is not set; as a path it would be the folder that we are in.
        raise UsageError("the folder has no name", safe="nothing was written", next_step="lakeward init DIR")
    directory = Path(name)
    wanted = {directory / path: content for path, content in packaged_files("example_project").items()}
    missing, differing = _compared(wanted)
    if differing:
        more = f", as are {len(differing) - 1} more" if len(differing) > 1 else ""
        raise UsageError(
            f"{differing[0]} is there already, and is another file{more}",
            safe="nothing was written",
            next_step="name a new folder: lakeward init DIR",
            path=str(differing[0]),
            paths=[str(path) for path in differing],
        )
    if dry_run:
        session.show_actions([f"write {path}" for path in missing], lakeward("init", directory))
        return
    write_files({path: wanted[path] for path in missing})
    lines = [f"wrote {path}" for path in missing] or [f"{directory} has the example project already; nothing to do"]
    moved = [] if directory.absolute().samefile(Path()) else [f"cd {shlex.quote(str(directory))}"]
    steps = [*moved, *NEXT_STEPS] if missing else []
    session.show({"directory": str(directory), "written": [str(path) for path in missing]}, lines, steps)


def _compared(wanted: dict[Path, bytes]) -> tuple[list[Path], list[Path]]:
    """Return the files that are missing, and those in whose place something else is."""
    missing, differing = [], []
    try:
        for path, content in wanted.items():
            blocking = [folder for folder in path.parents if folder.exists() and not folder.is_dir()]
            if blocking:
                differing.append(blocking[0])
            elif not path.exists() and not path.is_symlink():
                missing.append(path)
            elif not path.is_file() or path.read_bytes() != content:
                differing.append(path)
    except OSError as error:
        raise UsageError(
            f"{error.filename} can't be read: {error.strerror}",
            safe="nothing was written",
            next_step="choose another folder",
        ) from None
    return missing, differing
