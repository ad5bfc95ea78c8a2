"""What an edit of rows changes, as people read it before they say yes; and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lakeward.cli.confirm import confirm
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import OutputFormat, Session, heavy
from lakeward.cli.text import counted
from lakeward.errors import UsageError

if TYPE_CHECKING:
    from lakeward.storage.requests import WriteResult
    from lakeward.wiring.edit_diff import Edit
    from lakeward.wiring.editing import Editor

SHOWN_ROWS = 50
"""So many rows of an edit are shown; the counts are of all."""


def edit_lines(edit: Edit) -> list[str]:
    """Return an edit as lines: `+` added, `~` changed with before and after, `-` removed, and the counts."""
    lines = [line for _, line in zip(range(SHOWN_ROWS), _rows(edit), strict=False)]
    total = len(edit.added) + len(edit.changed) + len(edit.removed)
    if total > SHOWN_ROWS:
        lines.append(f"… and {counted(total - SHOWN_ROWS, 'more row')}")
    return [*lines, edit_counts(edit)]


def edit_counts(edit: Edit) -> str:
    """Return how many rows an edit adds, changes and removes."""
    return f"{counted(len(edit.added), 'row')} added, {len(edit.changed):,} changed, {len(edit.removed):,} removed"


def _rows(edit: Edit) -> Iterator[str]:
    words = heavy("lakeward.wiring.edit_diff")
    for row in edit.added:
        yield f"+ {words.in_words(edit.edited.named(row))}"
    for pair in edit.changed:
        cells = edit.differences(pair).items()
        changes = ", ".join(f"{name}: {words.shown(old)} → {words.shown(new)}" for name, (old, new) in cells)
        yield f"~ {words.in_words(edit.base.key(pair[0]))}: {changes}"
    for row in edit.removed:
        yield f"- {words.in_words({**edit.base.key(row), **edit.base.named(row)})}"


def check_can_ask(session: Session, yes: bool, dry_run: bool) -> None:
    """Refuse to ask about what is not shown.

    Raises:
        UsageError: the output is JSON, and neither `--yes` nor `--dry-run` was given.
    """
    if session.output is OutputFormat.json and not (yes or dry_run):
        raise UsageError(
            "with --output json the changes are not shown before they are written, so nobody is asked",
            safe="nothing was changed",
            next_step="add --yes, or --dry-run to see them",
        )


def apply_shown(session: Session, editor: Editor, dataset: str, edit: Edit, yes: bool) -> None:
    """Show an edit, ask, write it, and print what became of it.

    Raises:
        UsageError: nobody said yes.
        ConflictError, DataError: see `Editor.apply`.
    """
    for line in edit_lines(edit):
        session.say(line)
    if not yes:
        confirm("yes")
    result = editor.apply(edit)
    step = lakeward("dataset", "undo-edit", dataset, result.version) if result.committed else None
    lines = [became(result), *(f"warning: {each}" for each in result.warnings)]
    session.show(document(edit, result), lines, [step] if step else [])


def show_only(session: Session, editor: Editor, dataset: str, edit: Edit, step: str) -> None:
    """Print what an edit would do, and find out whether it could.

    Args:
        step: the command that does it.

    Raises:
        ConflictError: see `Editor.check`.
    """
    for line in edit_lines(edit):
        session.say(line)
    editor.check(edit)
    session.show(document(edit, None, dataset=dataset, dry_run=True), [], [step])


def document(edit: Edit, result: WriteResult | None, **more: object) -> Mapping[str, object]:
    """Return what `--output json` prints of an edit and of what became of it."""
    return {"read_version": edit.version, **edit.to_json(), **(result.to_json() if result else {}), **more}


def became(result: WriteResult) -> str:
    """Return what an edit made of the dataset."""
    if not result.committed:
        return f"nothing to write: dataset {result.dataset} stays at version {result.version}"
    return f"dataset {result.dataset} is at version {result.version} with {counted(result.row_count, 'row')}"
