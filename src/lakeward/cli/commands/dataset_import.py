"""`lakeward dataset import`: files into a dataset."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeward.cli.columns import parse_columns, parse_names
from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_create import ArmOption, ColumnOption, ColumnsOption, KeyOption
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import counted
from lakeward.control.routes import check_arm
from lakeward.storage.verbs import VERBS, verb_named

if TYPE_CHECKING:
    from lakeward.wiring.importing import ImportResult

NullOption = Annotated[
    list[str] | None,
    typer.Option("--null", metavar="TEXT", help="A text that means null, as NA; in CSV unquoted. May be repeated."),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHAR", help="CSV: what separates fields; else a comma, in a .tsv a tab."),
]
ModeOption = Annotated[str, typer.Option("--mode", metavar="MODE", help=f"How: {', '.join(VERBS)}.")]
EncodingOption = Annotated[
    str | None, typer.Option("--encoding", metavar="NAME", help="CSV: utf-8 (default), utf-16 or latin-1.")
]
HeaderOption = Annotated[
    bool, typer.Option("--header/--no-header", help="CSV, Excel: the first line or row names the columns.")
]
SheetOption = Annotated[
    str | None, typer.Option("--sheet", metavar="NAME", help="Excel: the sheet; none: the only one.")
]
SkipRowsOption = Annotated[
    int | None, typer.Option("--skip-rows", metavar="N", help="Excel: how many rows stand before the table.")
]
CellErrorsOption = Annotated[
    str | None,
    typer.Option("--cell-errors", metavar="HOW", help="Excel: refuse (default) cells like #N/A, or take them as null."),
]
BlankRowsOption = Annotated[
    str | None,
    typer.Option("--blank-rows", metavar="HOW", help="Excel: refuse (default) blank rows between others, or skip."),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="arrow, csv, excel, json, parquet or tsv; none: by the file's name."),
]
IdempotencyKeyOption = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key", metavar="KEY", help="Names the request: repeated with its key, it writes nothing."
    ),
]
OnErrorOption = Annotated[
    str,
    typer.Option(
        "--on-error",
        metavar="HOW",
        help="Records that can't be taken: refuse the import at the first, or quarantine in DATASET__rejected.",
    ),
]
MaxRejectedOption = Annotated[
    str | None,
    typer.Option("--max-rejected", metavar="N|P%", help="With quarantine: more than so many refuse the import."),
]
TextOption = Annotated[
    list[str] | None,
    typer.Option("--text", metavar="COLUMN", help="A column of a new dataset that is text, however it looks."),
]
FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…",
        help="Files: .csv, .tsv, .json, .ndjson, .xlsx, .parquet, .arrow; texts also packed. Folders, patterns "
        "in quotes ('*.csv', '**/*.csv') and s3://bucket/key.",
        show_default=False,
    ),
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "import")(import_file)


def file_options(
    null: list[str] | None, delimiter: str | None, encoding: str | None, header: bool = True, **others: object
) -> dict[str, Any]:
    """Return what was said about a file; nothing, if nothing was.

    Args:
        others: options by their names; None: nothing was said of it.
    """
    options: dict[str, Any] = {name: value for name, value in others.items() if value is not None}
    if null:
        options["null_markers"] = tuple(null)
    if delimiter is not None:
        options["delimiter"] = "\t" if delimiter == "\\t" else delimiter
    if encoding is not None:
        options["encoding"] = encoding
    if not header:
        options["header"] = False
    return options


def import_file(
    session: Session,
    dataset: DatasetArgument,
    files: FilesArgument,
    columns: ColumnsOption = None,
    column: ColumnOption = None,
    key: KeyOption = None,
    arm: ArmOption = None,
    mode: ModeOption = "append",
    null: NullOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = None,
    header: HeaderOption = True,
    sheet: SheetOption = None,
    skip_rows: SkipRowsOption = None,
    cell_errors: CellErrorsOption = None,
    blank_rows: BlankRowsOption = None,
    format: FormatOption = None,
    create: Annotated[bool, typer.Option("--create/--no-create", help="Make the dataset if it does not exist.")] = True,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Let replace or mirror leave the dataset without rows.")
    ] = False,
    on_error: OnErrorOption = "refuse",
    max_rejected: MaxRejectedOption = None,
    text: TextOption = None,
    idempotency_key: IdempotencyKeyOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Import files: all of their rows, or none.

    Their rows stand in the order of the files' names; all have the same columns, in whatever order. Every row becomes
    visible at once. append and replace look at no key. The others match rows by the primary key:
    append_new skips keys that are there, upsert updates them, mirror also deletes those that the files do not have,
    changes does what each row's column __op says (insert and update alike add the row or take its place, so that a feed
    may come twice; delete), delete takes files of keys.

    Types are the dataset's; of a new one those declared, or else proposed by reading all files from end to end.
    No value is changed: what does not fit its type is refused with file, line and column, and the dataset stays as it
    was. With --on-error quarantine such records, ragged lines and bytes that are no text go to DATASET__rejected
    instead, with the same facts and their own text, visible together with the rows.
    """
    check_arm(arm)
    verb_named(mode)
    excel = {"sheet": sheet, "skip_rows": skip_rows, "cell_errors": cell_errors, "blank_rows": blank_rows}
    how: dict[str, Any] = {
        "columns": parse_columns(columns, column or []),
        "primary_key": parse_names(key or []),
        "arm": arm,
        "mode": mode,
        "create": create,
        "format": format,
        "options": file_options(null, delimiter, encoding, header, **excel),
        "allow_empty": allow_empty,
        "idempotency_key": idempotency_key,
        "on_error": on_error,
        "max_rejected": max_rejected,
        "text": parse_names(text or []),
    }
    if dry_run:
        with session.rehearsal() as (workspace, before):
            planned = workspace.plan_import(dataset, files, session.progress, **how)
        session.show_actions([*before, *planned.actions()], "the same command without --dry-run")
        return
    started = time.monotonic()
    with session.workspace(make=True) as workspace:
        result = workspace.import_file(dataset, files, session.progress, **how)
    seconds = time.monotonic() - started
    lines, steps = _told(result, seconds)
    session.show({**result.to_json(), "seconds": round(seconds, 3)}, lines, steps)


def _told(result: ImportResult, seconds: float) -> tuple[list[str], list[str]]:
    """Return what is said of an import, and the next steps."""
    of_types = ", ".join(f"{name} {type_}" for name, type_ in result.columns.items())
    lines = [f"dataset {result.dataset} created: {of_types}"] if result.created else []
    became = f"{counted(result.rows_written, 'row')} written"
    if VERBS[result.mode].keyed:
        became = ", ".join(f"{count:,} {what}" for what, count in _counts(result).items())
    if result.rejected_to is not None:
        became += f" + {result.rows_rejected:,} rejected"
    of_files = f" of {counted(len(result.files), 'file')}" if len(result.files) > 1 else ""
    lines.append(f"{counted(result.rows_read, 'row')} read{of_files} = {became}, in {seconds:.1f} s")
    if result.repeated:
        lines.append(f"nothing was written now: an import with this key did it before, as version {result.version}")
    elif result.committed:
        lines.append(f"dataset {result.dataset} is at version {result.version} with {counted(result.row_count, 'row')}")
    else:
        lines.append(f"nothing to write: dataset {result.dataset} stays at version {result.version}")
    lines += [f"warning: {each}" for each in result.warnings]
    steps = [lakeward("dataset", "preview", result.dataset)]
    if result.rejected_to is not None:
        lines.append(f"what was rejected, and why: dataset {result.rejected_to}")
        steps.append(lakeward("dataset", "preview", result.rejected_to))
    return lines, steps


def _counts(result: ImportResult) -> dict[str, int]:
    """Return what became of the rows; what became of none is left out, unless nothing else is there."""
    counts = {
        "added": result.rows_added,
        "updated": result.rows_updated,
        "unchanged": result.rows_unchanged,
        "deleted": result.rows_deleted,
        "skipped": result.rows_skipped,
    }
    return {what: count for what, count in counts.items() if count} or {"changed": 0}
