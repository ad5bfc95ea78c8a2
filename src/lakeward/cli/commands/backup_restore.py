"""`lakeward backup restore`: bring a backup into an empty workspace."""

from __future__ import annotations

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.backup_create import FileArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "restore")(restore)


def restore(session: Session, file: FileArgument) -> None:
    """Restore a backup into a new or empty workspace.

    All of it comes, or nothing; a database that has datasets is refused. Afterwards the Iceberg snapshots that it
    refers to are looked for; the exit code is 1 if some are missing, and each is named. Datasets without missing files
    can be used then.
    """
    restored = heavy("lakeward.wiring.backup").restore_backup(
        session.flags, file, session.settings_file, say=lambda text: session.progress(text, 0)
    )
    backup = restored.backup
    lines = [f"restored {len(backup.datasets)} datasets as they were at {backup.at}"]
    lines += [
        f"MISSING {name} version {version}: {why}"
        for name, versions in restored.missing.items()
        for version, why in versions.items()
    ]
    session.show(restored.to_json(), lines, [lakeward("doctor"), lakeward("status")])
    if restored.missing:
        raise typer.Exit(1)
