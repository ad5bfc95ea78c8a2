"""`lakeward dataset edit`: the rows of a small dataset in an editor, and what was changed there as one version."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.edit_text import apply_shown, check_can_ask, document, show_only
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import counted
from lakeward.cli.text_editor import edit_file, named_editor
from lakeward.errors import DataError, LakewardError, UsageError

if TYPE_CHECKING:
    from lakeward.wiring.edit_diff import Edit
    from lakeward.wiring.editing import Editor, Sheet

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask before the changes are written.")]
MaxRowsOption = Annotated[
    int, typer.Option("--max-rows", min=1, metavar="N", help="How many rows a dataset may have to be edited.")
]
MaxMegabytesOption = Annotated[
    int, typer.Option("--max-mb", min=1, metavar="N", help="How many MiB its rows, and the file, may take.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "edit")(edit)


def edit(
    session: Session,
    dataset: DatasetArgument,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Only write the CSV file to edit.")
    ] = None,
    edited: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Take this edited CSV file; no editor is opened.")
    ] = None,
    version: Annotated[
        int | None,
        typer.Option("--version", min=0, metavar="N", help="With --from: the version that the file was exported at."),
    ] = None,
    yes: YesOption = False,
    max_rows: MaxRowsOption = 10_000,
    max_mb: MaxMegabytesOption = 10,
    dry_run: DryRunOption = False,
) -> None:
    """Edit a small dataset as CSV in $VISUAL or $EDITOR.

    The changes are shown, and written as one version if you say yes. Rows are matched by the primary key, or by
    __row_id where there is none; leave that empty in a new row. An empty cell is null, "" an empty string, a list or
    struct is JSON. Rows that somebody else changed meanwhile are never overwritten: nothing is written then, and the
    edited file is kept.
    """
    _check(export, edited, version)
    if export is None:
        check_can_ask(session, yes, dry_run)
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        limits = heavy("lakeward.wiring.editing").Limits(max_rows, max_mb << 20)
        editor = handle.editor.limited(limits)
        if export is not None:
            _export(session, editor.open(), export, dry_run)
        elif edited is not None:
            sheet = editor.open(version)
            _carry_out(session, editor, sheet, sheet.read(edited), yes, dry_run)
        else:
            _in_editor(session, editor, named_editor(), yes, dry_run)


def _check(export: Path | None, edited: Path | None, version: int | None) -> None:
    safe = "nothing was changed"
    if export is not None and edited is not None:
        raise UsageError("--export and --from can't be given together", safe=safe)
    if edited is None and version is not None:
        raise UsageError("--version says what a file was exported at: it needs --from", safe=safe)
    if edited is not None and version is None:
        raise UsageError(
            "--from needs --version: without it nobody knows which rows others changed since the file was exported",
            safe=safe,
            next_step="add --version N; `--export` printed it",
        )


def _export(session: Session, sheet: Sheet, path: Path, dry_run: bool) -> None:
    rows = counted(len(sheet.rows), "row")
    back = lakeward("dataset", "edit", sheet.dataset, "--from", path, "--version", sheet.version)
    if dry_run:
        session.show_actions([f"write {rows} of {sheet.dataset} version {sheet.version} to {path}"], back)
        return
    sheet.write(path)
    written = {"dataset": sheet.dataset, "version": sheet.version, "path": str(path), "rows": len(sheet.rows)}
    session.show(written, [f"{rows} of {sheet.dataset} version {sheet.version} written to {path}"], [back])


def _in_editor(session: Session, editor: Editor, command_: list[str], yes: bool, dry_run: bool) -> None:
    """Let a person edit. The file goes only when all of it is in the dataset, or nothing in it was changed."""
    sheet = editor.open()
    folder = Path(tempfile.mkdtemp(prefix="lakeward-edit-"))
    path = folder / "rows.csv"
    try:
        sheet.write(path)
    except LakewardError:
        shutil.rmtree(folder)
        raise
    again = lakeward("dataset", "edit", sheet.dataset, "--from", path, "--version", sheet.version)
    try:
        edit = _edited(sheet, command_, path)
        _carry_out(session, editor, sheet, edit, yes, dry_run, again)
    except LakewardError as error:
        kept = f"the edited file is kept: {path}; `{again}`"
        error.next_step = f"{error.next_step}; {kept}" if error.next_step else kept
        error.fields["path"] = str(path)
        raise
    if edit.empty or not dry_run:
        shutil.rmtree(folder)


def _edited(sheet: Sheet, command_: list[str], path: Path) -> Edit:
    """Open the editor until what it left can be read; where nobody is there to look at it, once."""
    while True:
        edit_file(command_, path)
        try:
            return sheet.read(path)
        except DataError as error:
            if not sys.stdin.isatty():
                raise
            typer.echo(f"{error}\n", err=True)
            if not typer.confirm("Open the editor again?", default=True, err=True):
                raise


def _carry_out(
    session: Session, editor: Editor, sheet: Sheet, edit: Edit, yes: bool, dry_run: bool, again: str | None = None
) -> None:
    if edit.empty:
        result = editor.apply(edit)
        session.show(
            document(edit, result), [f"nothing was changed: {sheet.dataset} stays at version {result.version}"]
        )
    elif dry_run:
        show_only(session, editor, sheet.dataset, edit, again or "the same command without --dry-run")
    else:
        apply_shown(session, editor, sheet.dataset, edit, yes)
