"""`lakeward backup create`: write a backup into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The backup.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "create")(create)


def create(
    session: Session,
    file: FileArgument,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Back up the database of the workspace.

    Names, ledger, settings of flips and pipelines, jobs, tokens, and the rows of the Postgres arm, all as they are at
    one instant; writers go on. Files of Iceberg tables are not in it: it names the snapshots that it refers to, which
    have to stay as long as the backup is to be of use. The file is readable by its owner only.
    """
    with session.workspace() as workspace:
        session.progress("backing up", 0)
        made = heavy("lakeward.wiring.backup").create_backup(workspace, file, force=force)
    document = made.to_json()
    line = f"{file}: {len(made.datasets)} datasets, {made.snapshots} Iceberg snapshots, {document['bytes']:,} bytes"
    session.show(document, [line], [lakeward("backup", "show", str(file))])
