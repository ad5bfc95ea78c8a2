"""The rows of a worksheet, one after the other, each cell as a Python value.

The part is parsed as a stream, so that memory is bounded by a row. A cell without content is not there; a text without
letters is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time

from lakeward.sources.formats.excel_numbers import NUMBER, dated, number
from lakeward.sources.formats.excel_package import Attributes
from lakeward.sources.formats.excel_texts import NoValue, unescaped
from lakeward.sources.formats.excel_workbook import Sheet, Workbook

_DIGITS = "0123456789"
_LAST_COLUMN = 16_384
_NOT_STORED = "is a formula whose value is not stored"
_STORE = "open the workbook in Excel and save it, so that values are stored"
_AS_NULL = "correct the cell, or take errors as nulls: --cell-errors null"
_BOOLEANS = {"1": True, "0": False, "true": True, "false": False}

Row = tuple[int, dict[int, object]]
"""A row's number (from 1), and its cells' values by column (from 0)."""


def sheet_rows(workbook: Workbook, sheet: Sheet) -> Iterator[Row]:
    """Yield the rows that a sheet holds, in order; rows without cells may come or be missing.

    A cell that holds no value of any type comes as `NoValue`.

    Raises:
        SourceFileError: the sheet is damaged.
    """
    reader = _SheetReader(workbook, sheet)
    for _ in workbook.package.parse(sheet.part, reader.start, reader.end, reader.text, kept=False):
        rows, reader.rows = reader.rows, []
        yield from rows
    if not reader.complete:
        raise workbook.package.damaged(f"sheet {sheet.name!r} has no cells, or ends too early")


def column_letters(column: int) -> str:
    """Return the name of a column (from 0): `A`, `B` … `XFD`."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def column_of(letters: str) -> int | None:
    """Return the column (from 0) of that name; None: there is none."""
    column = 0
    for letter in letters:
        if not "A" <= letter <= "Z":
            return None
        column = column * 26 + ord(letter) - ord("A") + 1
    return column - 1 if 0 < column <= _LAST_COLUMN else None


class _SheetReader:
    """Takes the elements of a sheet, and keeps the rows that are complete in `rows`."""

    def __init__(self, workbook: Workbook, sheet: Sheet) -> None:
        self.rows: list[Row] = []
        self.complete = False
        self._damaged = workbook.package.damaged
        self._sheet = sheet.name
        self._texts: Sequence[str | NoValue] = workbook.texts()
        self._kinds = workbook.kinds
        self._from_1904 = workbook.from_1904
        self._columns: dict[str, int] = {}
        self._in_data = False
        self._row = 0
        self._cells: dict[int, object] = {}
        self._column = -1
        self._cell: Attributes | None = None
        self._pieces: list[str] = []
        self._reading = False
        self._valued = False
        self._formula = False
        self._spoken = False

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "c":
            if self._in_data:
                self._start_cell(attributes)
        elif tag == "v" or tag == "t":
            self._reading = self._cell is not None and not self._spoken
            self._valued = self._valued or self._reading
        elif tag == "f":
            self._formula = True
        elif tag == "row":
            if self._in_data:
                self._start_row(attributes)
        elif tag == "rPh":
            self._spoken = True
        elif tag == "sheetData":
            self._in_data = True

    def end(self, tag: str) -> None:
        if tag == "v" or tag == "t":
            self._reading = False
        elif tag == "c":
            if self._cell is not None:
                self._end_cell(self._cell)
                self._cell = None
        elif tag == "row":
            if self._in_data:
                self.rows.append((self._row, self._cells))
        elif tag == "rPh":
            self._spoken = False
        elif tag == "sheetData":
            self._in_data, self.complete = False, True

    def text(self, text: str) -> None:
        if self._reading:
            self._pieces.append(text)

    def _start_row(self, attributes: Attributes) -> None:
        given = attributes.get("r")
        row = int(given) if given is not None and given.isdecimal() else self._row + 1
        if row <= self._row:
            raise self._damaged(f"sheet {self._sheet!r} has row {row} behind row {self._row}, so it is damaged")
        self._row, self._cells, self._column = row, {}, -1

    def _start_cell(self, attributes: Attributes) -> None:
        place = attributes.get("r")
        column: int | None = self._column + 1
        if place is not None:
            letters = place.rstrip(_DIGITS)
            column = self._columns.get(letters)
            if column is None:
                column = column_of(letters)
        if column is None or column <= self._column:
            raise self._damaged(f"sheet {self._sheet!r} has a cell {place!r} out of order in row {self._row}")
        if place is not None:
            self._columns[letters] = column
        self._column, self._cell = column, attributes
        self._pieces, self._valued, self._formula = [], False, False

    def _end_cell(self, cell: Attributes) -> None:
        kind = cell.get("t", "n")
        pieces = self._pieces
        text = pieces[0] if len(pieces) == 1 else "".join(pieces)
        if (kind == "n" and not text) or not self._valued:
            if self._formula:
                self._cells[self._column] = NoValue("", _NOT_STORED, advice=_STORE)
            return
        self._cells[self._column] = self._value(kind, text, cell)

    def _value(self, kind: str, text: str, cell: Attributes) -> object:
        if kind == "n":
            style = cell.get("s")
            if style is None:
                return number(text)
            try:
                of_format = self._kinds[int(style)] if self._kinds else NUMBER
            except (ValueError, IndexError):
                raise self._outside("style", style) from None
            return number(text) if of_format == NUMBER else dated(text, of_format, self._from_1904)
        if kind == "s":
            try:
                return self._texts[int(text)]
            except (ValueError, IndexError):
                raise self._outside("text", text) from None
        if kind == "inlineStr" or kind == "str":
            return unescaped(text)
        if kind == "b":
            return _BOOLEANS[text] if text in _BOOLEANS else NoValue(text, "is no boolean")
        if kind == "e":
            return NoValue(text, "is an error of Excel", error=True, advice=_AS_NULL)
        return _iso(text) if kind == "d" else NoValue(text, f"is of a kind {kind!r} that Excel has not")

    def _outside(self, what: str, number_: str) -> Exception:
        place = f"{self._sheet}!{column_letters(self._column)}{self._row}"
        return self._damaged(f"{place} refers to {what} {number_}, which the workbook has not, so it is damaged")


def _iso(text: str) -> date | datetime | time | NoValue:
    try:
        if "T" not in text:
            return time.fromisoformat(text) if ":" in text else date.fromisoformat(text)
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return NoValue(text, "is no date")
    return NoValue(text, "has a time zone, which Excel has not") if parsed.tzinfo else parsed
