"""Which commands are run on a server, and which are not: a test fails for one that is not here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from lakeward.errors import UsageError


@dataclass(frozen=True)
class Remote:
    """A command that is run on the server.

    Args:
        action: what it takes, somewhere at least; where exactly is asked where it is done.
        paths: its parameters that name files: `file`, `files` (patterns, folders, and locations of a store), `project`
            (the folder's pipelines), `model` (a file, unless it is `module:function`), or `out`, which it writes.
        brings_files: it reads files as sources are read, and may read those that came with it.
    """

    action: str
    paths: Mapping[str, str] = field(default_factory=dict)
    brings_files: bool = False


@dataclass(frozen=True)
class Local:
    """A command that needs no workspace, and is run where it is typed."""


@dataclass(frozen=True)
class Refused:
    """A command that is for the machine of the workspace alone.

    Args:
        why: the reason.
    """

    why: str


COMMANDS: Final[Mapping[tuple[str, ...], Remote | Local | Refused]] = {
    ("status",): Remote("dataset.read"),
    ("plan",): Remote("pipeline.read", {"project": "project"}),
    ("apply",): Remote("pipeline.apply", {"project": "project"}),
    ("build",): Remote("pipeline.build"),
    ("run",): Remote("dataset.write"),
    ("verify",): Remote("dataset.read"),
    ("maintain",): Remote("maintenance.run"),
    ("doctor",): Remote("doctor.read"),
    ("catalog", "create"): Remote("catalog.create"),
    ("catalog", "list"): Remote("dataset.read"),
    ("catalog", "rename"): Remote("catalog.rename"),
    ("catalog", "drop"): Remote("catalog.drop"),
    ("catalog", "undrop"): Remote("catalog.undrop"),
    ("schema", "create"): Remote("schema.create"),
    ("schema", "list"): Remote("dataset.read"),
    ("schema", "rename"): Remote("schema.rename"),
    ("schema", "drop"): Remote("schema.drop"),
    ("schema", "undrop"): Remote("schema.undrop"),
    ("dataset", "create"): Remote("dataset.create"),
    ("dataset", "list"): Remote("dataset.read"),
    ("dataset", "show"): Remote("dataset.read"),
    ("dataset", "preview"): Remote("dataset.read"),
    ("dataset", "changes"): Remote("dataset.read"),
    ("dataset", "history"): Remote("dataset.read"),
    ("dataset", "expect"): Remote("dataset.read", {"file": "file"}),
    ("dataset", "expectations"): Remote("dataset.read"),
    ("dataset", "lineage"): Remote("dataset.read"),
    ("dataset", "import"): Remote("dataset.write", {"files": "files"}, brings_files=True),
    ("dataset", "export"): Remote("dataset.read", {"file": "out"}),
    ("dataset", "edit"): Remote("dataset.write", {"export": "out", "edited": "file"}),
    ("dataset", "undo-edit"): Remote("dataset.write"),
    ("dataset", "copy"): Remote("flip.run"),
    ("dataset", "adopt"): Remote("dataset.create"),
    ("dataset", "rename"): Remote("dataset.rename"),
    ("dataset", "drop"): Remote("dataset.drop"),
    ("dataset", "undrop"): Remote("dataset.undrop"),
    ("source", "add"): Remote("source.add"),
    ("source", "list"): Remote("source.read"),
    ("source", "tables"): Remote("source.read"),
    ("source", "sync"): Remote("source.sync"),
    ("source", "follow"): Remote("source.sync"),
    ("source", "logs"): Remote("source.read"),
    ("source", "unfollow"): Remote("source.sync"),
    ("source", "remove"): Remote("source.remove"),
    ("flags", "list"): Remote("flag.read"),
    ("flags", "set"): Remote("flag.set"),
    ("flags", "clear"): Remote("flag.set"),
    ("flip", "start"): Remote("flip.run"),
    ("flip", "status"): Remote("flip.read"),
    ("flip", "verify"): Remote("flip.run"),
    ("flip", "switch"): Remote("flip.run"),
    ("flip", "revert"): Remote("flip.run"),
    ("flip", "complete"): Remote("flip.run"),
    ("flip", "cancel"): Remote("flip.run"),
    ("flip", "canary"): Remote("flip.run"),
    ("flip", "check"): Remote("flip.read"),
    ("flip", "recheck"): Remote("flip.run"),
    ("flip", "resync"): Remote("flip.run"),
    ("flip", "ignore", "add"): Remote("flip.run"),
    ("flip", "ignore", "list"): Remote("flip.read"),
    ("flip", "ignore", "remove"): Remote("flip.run"),
    ("move", "plan"): Remote("move.read", {"file": "out"}),
    ("move", "apply"): Remote("move.run", {"plan": "file", "retry_file": "out"}),
    ("move", "undo"): Remote("move.run"),
    ("move", "status"): Remote("move.read"),
    ("ledger", "list"): Remote("ledger.read"),
    ("ledger", "recover"): Remote("ledger.recover"),
    ("ledger", "adopt"): Remote("ledger.recover"),
    ("ledger", "restore"): Remote("ledger.recover"),
    ("model", "add"): Remote("model.add", {"what": "model", "project": "project"}),
    ("model", "list"): Remote("model.read"),
    ("model", "show"): Remote("model.read"),
    ("sql",): Remote("dataset.read", {"to": "out"}),
    ("job", "add"): Remote("job.run"),
    ("job", "cancel"): Remote("job.run"),
    ("job", "kinds"): Remote("job.read"),
    ("job", "list"): Remote("job.read"),
    ("job", "log"): Remote("job.read"),
    ("job", "retry"): Remote("job.run"),
    ("job", "schedules"): Remote("job.read"),
    ("job", "show"): Remote("job.read"),
    ("token", "add"): Remote("token.add"),
    ("token", "list"): Remote("token.read"),
    ("token", "revoke"): Remote("token.revoke"),
    ("grant", "set"): Remote("grant.set"),
    ("grant", "list"): Remote("grant.read"),
    ("grant", "remove"): Remote("grant.remove"),
    ("audit", "list"): Remote("audit.read"),
    ("init",): Local(),
    ("demo",): Local(),
    ("lint-seam",): Local(),
    ("worker",): Refused("it is a process of the workspace's machine"),
    ("backup", "create"): Refused("it holds all that the workspace knows, its secrets too"),
    ("backup", "restore"): Refused("it makes a workspace"),
    ("backup", "show"): Local(),
    ("serve",): Refused("it is the server"),
    ("source", "load"): Refused("it runs Python of yours; write what that reads by `dataset import`"),
    ("ledger", "drill"): Refused("it kills processes of its own workspace"),
}
"""By the words of the command."""


def refused(name: tuple[str, ...], command: Local | Refused) -> UsageError:
    """Return the error of a command that is not run on a server."""
    why = command.why if isinstance(command, Refused) else "it needs no workspace"
    return UsageError(
        f"lakeward {' '.join(name)} is not run on a server: {why}",
        safe="nothing was done",
        next_step="run it on the machine of the workspace, without --server",
        command=" ".join(name),
    )
