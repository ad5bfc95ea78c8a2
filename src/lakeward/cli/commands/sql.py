"""`lakeward sql`: one query, to see its rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from lakeward.cli.command import command
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import counted, table
from lakeward.errors import UsageError

if TYPE_CHECKING:
    from lakeward.pipelines.ad_hoc import Answer

SHOWN_ROWS = 100
"""So many are shown where nothing else is asked for."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "sql")(sql)


def sql(
    session: Session,
    query: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; - reads it from standard input.")],
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=0, help="So many rows at most.", show_default=False)
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Write all rows to a .csv or .parquet file.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Ask a query, and see its rows. Changes nothing.

    It reads datasets by their full names (FROM main.raw.orders), at their newest versions, all of one instant. The
    settings sql.* say how much memory and time it may take. Without --limit, 100 rows are shown, and a file gets all.
    """
    if to is None and force:
        raise UsageError("--force is for --to", next_step="name a file, or leave --force out")
    if to is not None:
        heavy("lakeward.wiring.exporting").check_target(to, force)
    text = sys.stdin.read() if query == "-" else query
    with session.workspace() as workspace:
        with workspace.sql(text, limit if to is not None or limit is not None else SHOWN_ROWS) as answer:
            if to is not None:
                _written(session, answer, to)
            else:
                _shown(session, answer)


def _written(session: Session, answer: Answer, path: Path) -> None:
    exporting = heavy("lakeward.wiring.exporting")
    rows = exporting.write_file(answer.reader, path)
    size = path.stat().st_size
    document = {"path": str(path), "rows": rows, "size_bytes": size, "versions": dict(answer.versions)}
    session.show(document, [f"{counted(rows, 'row')} written to {path} ({size:,} bytes)"])


def _shown(session: Session, answer: Answer) -> None:
    found = answer.to_arrow()
    names, rows = found.column_names, found.to_pylist()
    numbers = [name for name in names if any(isinstance(row[name], int | float) for row in rows)]
    more = "; there are more: see --limit, --to" if answer.truncated else ""
    lines: list[RenderableType] = [
        table(names, ([row[name] for name in names] for row in rows), numbers),
        f"{counted(len(rows), 'row')}{more}",
    ]
    types = {name: str(type_) for name, type_ in answer.types.items()}
    document = {"columns": types, "rows": rows, "truncated": answer.truncated, "versions": dict(answer.versions)}
    session.show(document, lines)
