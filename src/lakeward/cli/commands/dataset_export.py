"""`lakeward dataset export`: a dataset into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakeward.cli.columns import parse_names
from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_import import DelimiterOption, EncodingOption, NullOption, file_options
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.commands.dataset_preview import SinceOption, VersionOption, WhereOption
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import counted


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "export")(export)


def export(
    session: Session,
    dataset: DatasetArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to: a .csv or .parquet file.", show_default=False)
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="COLUMN", help="Only these columns; repeat it, or use commas."),
    ] = None,
    where: WhereOption = None,
    version: VersionOption = None,
    since: SinceOption = None,
    null: NullOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Write a dataset to a file.

    The file appears under its name when it is complete.
    """
    heavy("lakeward.wiring.exporting").check_target(file, force)
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        if dry_run:
            replaced = ", instead of the file that is there" if file.exists() else ""
            action = f"write version {version or handle.version} of {handle.name} to {file}{replaced}"
            session.show_actions([action], "the same command without --dry-run")
            return
        result = handle.export(
            file,
            columns=parse_names(select) if select else None,
            where=where,
            version=version,
            since=since,
            overwrite=force,
            options=file_options(null, delimiter, encoding),
            progress=session.progress,
        )
    line = f"{counted(result.rows, 'row')} of {result.dataset} version {result.version} written to {result.path}"
    session.show(result.to_json(), [f"{line} ({result.size_bytes:,} bytes)"])
