"""What a command gets: its common options, the way to its workspace, and the one door to standard output."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.text import Text

from lakeward import logs
from lakeward.cli import served
from lakeward.cli.next_steps import with_home
from lakeward.cli.progress import Progress
from lakeward.cli.temporary_home import temporary_home
from lakeward.errors import UnknownObject
from lakeward.redaction import Redactor
from lakeward.types.plain_json import json_value

if TYPE_CHECKING:
    from lakeward.wiring.sections import LogsSection
    from lakeward.wiring.settings import LoadedSettings
    from lakeward.wiring.workspace import Workspace

PROJECT_FILE = "lakeward.toml"
PIPE_CLOSED = 141
"""The exit code when whoever read standard output is gone, as a shell reports it (128 + SIGPIPE)."""

_WIDE = 10_000


class OutputFormat(StrEnum):
    """How results are printed."""

    text = "text"
    json = "json"


class Session:
    """One run of a command.

    Args:
        home: the workspace directory, if it was given.
        output: text for people or one JSON document for programs.
        verbose: 1: more log lines; 2: all of them, and tracebacks of errors.
        quiet: only errors.
        redactor: what may not be printed.
    """

    def __init__(
        self, home: Path | None, output: OutputFormat, verbose: int, quiet: bool, redactor: Redactor | None = None
    ) -> None:
        self.home = home
        self.output = output
        self.quiet = quiet
        self.redactor = redactor or Redactor.of_environment()
        self.project: Path | None = None
        lines = not quiet and output is OutputFormat.text
        self.progress = Progress(sys.stderr, ("live" if sys.stderr.isatty() else "lines") if lines else "none")
        self._service = False
        self._verbose = verbose
        self._set_up_logs(None)

    def progress_of_stage(self, stage: str, rows: int, total: int | None) -> None:
        """Show how far a stage of a flip is. The canary counts its reads, all others rows."""
        self.progress(stage, rows, total, "reads" if stage == "canary" else "rows")

    def log_as_service(self) -> None:
        """Log like what runs for days: from `info` on, and with the time, unless settings say otherwise."""
        self._service = True
        self._set_up_logs(None)

    def _set_up_logs(self, wanted: LogsSection | None) -> None:
        """Set up the log of this process; what the command line says counts more than settings."""
        level = (wanted.level if wanted is not None else None) or ("info" if self._service else "warning")
        if self.quiet:
            level = "error"
        elif self._verbose:
            level = "debug" if self._verbose > 1 else "info" if level != "debug" else level
        logs.set_up(
            self.redactor,
            form=wanted.format if wanted is not None else "text",
            level=level,
            everything=self._verbose > 1,
            timed=self._service,
        )

    # The workspace ---------------------------------------------------------------------------------------------------

    @property
    def flags(self) -> dict[str, object]:
        """What the command line says about the workspace."""
        return {"home": self.home}

    @property
    def settings_file(self) -> Path | None:
        """The `lakeward.toml` of the project that we are in."""
        start = (self.project or Path()).absolute()
        found = (folder / PROJECT_FILE for folder in (start, *start.parents))
        return next((file for file in found if file.is_file()), None)

    @contextmanager
    def workspace(self, *, make: bool = False) -> Iterator[Workspace]:
        """Open the workspace for the block.

        Args:
            make: make it if it is not there. Commands that only look don't, lest a wrong path becomes a database.

        Raises:
            UnknownObject: it is not there, and `make` is False.
        """
        opening = heavy("lakeward.wiring.opening")
        if served.now is not None:
            self._learn(served.now.settings)
            with opening.open_loaded(served.now.settings) as workspace:
                yield workspace
            return
        loaded: LoadedSettings = heavy("lakeward.wiring.places").resolve_settings(self.flags, self.settings_file)
        self._learn(loaded)
        missing = _missing_home(loaded)
        if missing is not None and not make:
            raise UnknownObject(
                f"there is no workspace in {missing}",
                next_step="name another: --home DIR or LAKEWARD_HOME; `lakeward dataset import NAME FILE` makes one",
                home=str(missing),
            )
        with opening.open_workspace(self.home, settings_file=self.settings_file, recover=False) as workspace:
            yield workspace

    @contextmanager
    def rehearsal(self) -> Iterator[tuple[Workspace, list[str]]]:
        """Open the workspace for a dry run: where it is not there yet, an empty one that is thrown away.

        Yields:
            The workspace, and the actions that come before all others.
        """
        opening = heavy("lakeward.wiring.opening")
        places = heavy("lakeward.wiring.places")
        found = served.now.settings if served.now is not None else None
        loaded: LoadedSettings = found or places.resolve_settings(self.flags, self.settings_file)
        self._learn(loaded)
        missing = _missing_home(loaded) if served.now is None else None
        if missing is None:
            with self.workspace() as workspace:
                yield workspace, []
            return
        with temporary_home("lakeward-rehearsal-") as home:
            with opening.open_workspace(home, warehouse=home / "warehouse") as workspace:
                yield workspace, [f"make the workspace in {missing}"]

    def _learn(self, loaded: LoadedSettings) -> None:
        if loaded.values.database_url is not None:
            self.redactor.add_url(loaded.values.database_url.get_secret_value())
        for value in loaded.values.catalog.values():
            self.redactor.add_url(value)
        self._set_up_logs(loaded.values.logs)

    # Output ----------------------------------------------------------------------------------------------------------

    def show(
        self,
        document: Mapping[str, object],
        lines: Iterable[RenderableType],
        next_steps: Sequence[str] = (),
    ) -> None:
        """Print the command's one result.

        Args:
            document: for programs; `next_steps` is added.
            lines: the same for people.
            next_steps: commands that lead on; the `--home` that was given is added.
        """
        self.progress.close()
        steps = with_home(next_steps, self.home)
        if self.output is OutputFormat.json:
            self.write_json({**document, "next_steps": steps})
            return
        for line in lines:
            self.say(line)
        for step in steps:
            self.say(f"Next: {step}")

    def say(self, line: RenderableType) -> None:
        """Print a line of text at once; nothing with JSON."""
        if self.output is OutputFormat.json:
            return
        self.progress.close()
        width = None if sys.stdout.isatty() else _WIDE
        console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False, width=width, soft_wrap=True)
        with console.capture() as capture:
            console.print(Text(line) if isinstance(line, str) else line)
        # A table pads its last column; nobody wants that in a file.
        text = "\n".join(part.rstrip() for part in capture.get().split("\n"))
        sys.stdout.write(self.redactor(text))
        sys.stdout.flush()

    def write_json(self, document: Mapping[str, object]) -> None:
        """Print one JSON document."""
        text = json.dumps(json_value(document), ensure_ascii=False, allow_nan=False, indent=2)
        sys.stdout.write(self.redactor(text).encode("utf-8", "replace").decode() + "\n")

    def show_actions(
        self, actions: Sequence[str], next_step: str, warnings: Sequence[str] = (), remedies: Sequence[str] = ()
    ) -> None:
        """Print what a dry run found; with `warnings`, and the commands that lead out of them."""
        lines = [f"{number}. {action}" for number, action in enumerate(actions, start=1)]
        nothing = ["nothing to do"]
        self.show(
            {"dry_run": True, "actions": list(actions), **({"warnings": list(warnings)} if warnings else {})},
            [*(lines or nothing), *(f"warning: {warning}" for warning in warnings)],
            [*remedies, *([next_step] if actions else [])],
        )


def forget_stdout() -> None:
    """Let what is still to be written, by the interpreter's last flush too, go nowhere: its reader is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def heavy(module: str) -> ModuleType:
    """Load a room that brings engines with it: only once a command's arguments are understood, never for `--help`."""
    return importlib.import_module(module)


def _missing_home(loaded: LoadedSettings) -> Path | None:
    """Return the directory where an embedded workspace is meant and is not; None if there is one, or none is meant."""
    home = loaded.values.home
    if loaded.values.database_url is not None or home is None:
        return None
    home = home.expanduser().absolute()
    return None if (home / "postgres").exists() else home
