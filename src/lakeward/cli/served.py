"""What differs where a command runs on a server for somebody elsewhere: its settings, and its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from lakeward.access.guard import may, require, require_somewhere
from lakeward.cli.remote.commands import COMMANDS, Remote, refused
from lakeward.errors import NotAllowed, UsageError

if TYPE_CHECKING:
    from lakeward.wiring.settings import LoadedSettings


@dataclass
class Served:
    """One command that is run for somebody elsewhere.

    Args:
        name: of the command: `("dataset", "import")`.
        settings: the server's, as it was started; no file and no variable of whoever asks counts.
        mounts: what a path is here that they named; others are the same.
    """

    name: tuple[str, ...]
    settings: LoadedSettings
    mounts: Mapping[str, str]
    written: list[tuple[str, str]] = field(default_factory=list)
    """Files that the command may have written: what they named, and the path here."""

    def taken(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the command's arguments, by parameter, as they are here.

        Raises:
            UsageError: it is not for others.
            Forbidden: whoever asks may not do it anywhere.
            NotAllowed: a path leads out of what was sent.
        """
        if not self.name:
            raise UsageError(
                "what is to be run does not begin with a command: options before it are for the machine that asks",
                safe="nothing was done",
            )
        command = COMMANDS[self.name]
        if not isinstance(command, Remote):
            raise refused(self.name, command)
        require_somewhere(command.action)
        if _brings_code(command, arguments):
            self._check_code()
        if command.brings_files:
            self.settings = self._with_own_files()
        return {
            each: self._here(value, command.paths[each]) if each in command.paths else value
            for each, value in arguments.items()
        }

    def _here(self, value: Any, kind: str) -> Any:
        if value is None:
            return None
        if isinstance(value, list | tuple):
            return [self._here(each, kind) for each in value]
        given = str(value)
        if kind == "files" and "://" in given:
            return value
        if kind == "model" and not Path(given).suffix and ":" in given:
            return value
        here = self.mounts.get(given, given)
        path = PurePosixPath(here)
        if path.is_absolute() or ".." in path.parts or here.startswith("~"):
            raise NotAllowed(
                f"{given} was not sent, and files of the server are not for commands from elsewhere",
                safe="nothing was changed",
                next_step="name a file of your own machine",
                path=given,
            )
        if kind == "out":
            self.written.append((given, here))
        return Path(here) if isinstance(value, Path) else here

    def _check_code(self) -> None:
        if not self.settings.values.server.allow_code:
            raise NotAllowed(
                "what was sent has code, which would run as the server, and the server takes none",
                safe="nothing was changed",
                next_step="run it where the workspace is, or set server.allow_code there",
            )
        require("code.run")

    def _with_own_files(self) -> LoadedSettings:
        """Return settings by which also that may be read which was sent, whoever asks."""
        values = self.settings.values
        if values.sources.allowed_paths is None and may("code.run"):
            return self.settings  # anything may be
        allowed = (*(values.sources.allowed_paths or ()), str(Path.cwd()))
        sources = values.sources.model_copy(update={"allowed_paths": allowed})
        return self.settings.model_copy(update={"values": values.model_copy(update={"sources": sources})})


def _brings_code(command: Remote, arguments: Mapping[str, Any]) -> bool:
    """Say whether a command brings Python, or a pickle, that the server would run."""
    if arguments.get("allow_pickle"):
        return True
    if "project" not in command.paths.values():
        return False
    return any(name.lower().endswith(".py") for _, _, names in os.walk(".") for name in names)


now: Served | None = None
"""The command that this process runs for somebody elsewhere; None: it is of this machine."""
