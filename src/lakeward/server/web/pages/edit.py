"""The editor of a manual table: its cells as a form, the edit shown before it is applied, and undo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from lakeward.access.guard import principal
from lakeward.errors import LakewardError
from lakeward.server.problems import status_of
from lakeward.server.rooms import Here
from lakeward.server.rules import needs
from lakeward.server.web.edit_form import Pending, edit_of, shown, take
from lakeward.server.web.edit_shown import changed_rows
from lakeward.server.web.messages import Said, elsewhere
from lakeward.server.web.page import page
from lakeward.server.web.words import address, in_path, plural
from lakeward.wiring.actor import actor
from lakeward.wiring.dataset import Dataset
from lakeward.wiring.editing import Sheet

ROWS = 50
"""So many rows are on one page of the form."""

NEW_ROWS = 3
"""So many empty rows stand below, at least, for new ones."""

MOST_FIELDS = 40_000
"""Of a form; a dataset with more than 700 columns is not edited here."""

router = APIRouter()


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form; a name that comes twice counts once."""
    async with request.form(max_fields=MOST_FIELDS) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


Form = Annotated[Mapping[str, str], Depends(_form)]


@dataclass(frozen=True)
class _Edited:
    """A request that edits.

    Args:
        request: what is answered.
        dataset: which one.
        sheet: its rows as they were read.
        pending: what was typed.
        first: the number of the first row of the page.
    """

    request: Request
    dataset: Dataset
    sheet: Sheet
    pending: Pending
    first: int

    def form(self, problem: LakewardError | None = None) -> Response:
        """Show the cells."""
        rows = range(self.first, min(self.first + ROWS, len(self.sheet.rows)))
        names, texts = self.sheet.rows.schema.names, self.sheet.rows.texts
        cells = [
            (
                row,
                [
                    (self.pending.changed.get(row, {}).get(name), shown(texts[row][place]))
                    for place, name in enumerate(names)
                ],
                row in self.pending.removed,
            )
            for row in rows
        ]
        return page(
            self.request,
            "edit.html",
            status=status_of(problem) if problem is not None else HTTPStatus.OK,
            record=self.dataset.record,
            columns=self.sheet.rows.schema.columns,
            key=self.sheet.rows.schema.primary_key,
            version=self.sheet.version,
            cells=cells,
            added=self.pending.added + [{} for _ in range(NEW_ROWS)],
            first=self.first,
            last=rows.stop,
            total=len(self.sheet.rows),
            more=rows.stop < len(self.sheet.rows),
            pending=self.pending,
            problem=Said.of(problem) if problem is not None else None,
            editor=_author(),
        )

    def review(self) -> Response:
        """Show the edit that it means, before anything is written."""
        edit = edit_of(self.sheet, self.pending)
        self.dataset.editor.check(edit)
        columns, rows = changed_rows(edit)
        return page(
            self.request,
            "edit_review.html",
            record=self.dataset.record,
            version=self.sheet.version,
            columns=columns,
            rows=rows,
            pending=self.pending,
            first=self.first,
            editor=_author(),
            undone=None,
        )

    def apply(self) -> Response:
        """Write it as one version."""
        edit = edit_of(self.sheet, self.pending)
        written = self.dataset.editor.apply(edit, _author())
        return _applied(self.request, self.dataset, written.version, written.committed, "edited")


@router.get("/edit/{name:path}", dependencies=[needs("dataset.write", of="name")])
def edit(request: Request, rooms: Here, name: str) -> Response:
    """Show the newest rows of a dataset as a form."""
    dataset = rooms.workspace.dataset(name)
    sheet = dataset.editor.open()
    return _Edited(request, dataset, sheet, Pending(sheet.version), 0).form()


@router.post("/edit/{name:path}", dependencies=[needs("dataset.write", of="name")])
def edited(request: Request, rooms: Here, name: str, form: Form) -> Response:
    """Take what was typed, and show what is asked for: another page of rows, what the edit is; or apply it."""
    dataset = rooms.workspace.dataset(name)
    pending = Pending.read(form.get("pending", ""))
    sheet = dataset.editor.open(pending.version)
    if "rows" in form:
        take(pending, form, sheet)
    first, go = int(form.get("first", "0")) if form.get("first", "0").isdecimal() else 0, form.get("go", "")
    step = {"previous": -ROWS, "next": ROWS}.get(go, 0)
    asked = _Edited(request, dataset, sheet, pending, max(0, first + step) if first + step < len(sheet.rows) else first)
    try:
        return {"review": asked.review, "apply": asked.apply}.get(go, asked.form)()
    except LakewardError as error:
        # What was typed stays in its cells, to be mended.
        return asked.form(error)


@router.get("/undo/{name:path}", dependencies=[needs("dataset.write", of="name")])
def undo(request: Request, rooms: Here, name: str) -> Response:
    """Show what takes the newest edit back, before anything is written."""
    dataset = rooms.workspace.dataset(name)
    back = dataset.editor.inverse()
    dataset.editor.check(back)
    columns, rows = changed_rows(back)
    return page(
        request,
        "edit_review.html",
        record=dataset.record,
        version=dataset.version,
        columns=columns,
        rows=rows,
        pending=None,
        first=0,
        editor=_author(),
        undone=back.version,
    )


@router.post("/undo/{name:path}", dependencies=[needs("dataset.write", of="name")])
def undone(request: Request, rooms: Here, name: str, form: Form) -> Response:
    """Take an edit back, as a new version."""
    dataset = rooms.workspace.dataset(name)
    version = form.get("version", "")
    back = dataset.editor.inverse(int(version) if version.isdecimal() else None)
    written = dataset.editor.apply(back, _author())
    return _applied(request, dataset, written.version, written.committed, f"took back version {version}")


def _applied(request: Request, dataset: Dataset, version: int, committed: bool, what: str) -> Response:
    to = address(f"/datasets/{in_path(dataset.name)}", tab="changes" if committed else None)
    if not committed:
        return elsewhere(request, to, Said("info", "Nothing was changed, so that no version was made"))
    text = f"{what[0].upper()}{what[1:]}: version {version}, {plural(dataset.row_count, 'row')}"
    return elsewhere(request, to, Said("done", text, f"version {version - 1} can still be read"))


def _author() -> str:
    """Return who edits: who is signed in, or else the user of this process."""
    return principal().name or actor()
