"""The table in a sheet: which row names the columns, and which rows are records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

from pydantic import Field

from lakeward.errors import SourceFileError
from lakeward.sources.file_format import FormatOptions
from lakeward.sources.formats.excel_package import Package
from lakeward.sources.formats.excel_rows import Row, column_letters, sheet_rows
from lakeward.sources.formats.excel_texts import NoValue
from lakeward.sources.formats.excel_values import text_of
from lakeward.sources.formats.excel_workbook import Workbook
from lakeward.sources.rejects import RECORD_CHARACTERS, Rejected, Rejects
from lakeward.sources.source_file import SourceFile
from lakeward.types.schema import name_key

_ROWS = 4096


class ExcelOptions(FormatOptions):
    """Where in a workbook the table is, and what its cells mean."""

    sheet: str | None = Field(default=None, description="The sheet's name; none: the only one.")
    header: bool = Field(
        default=True, description="Whether the first row names the columns; without, they are `column1`, `column2` …"
    )
    skip_rows: int = Field(default=0, ge=0, description="How many rows stand before the table.")
    null_markers: tuple[str, ...] = Field(default=(), description="Texts that mean null, besides empty cells.")
    cell_errors: Literal["refuse", "null"] = Field(
        default="refuse", description="Whether errors of Excel (`#N/A`, `#DIV/0!`) are refused, or are nulls."
    )
    blank_rows: Literal["refuse", "skip"] = Field(
        default="refuse", description="Whether blank rows between others are refused, or left out."
    )


@dataclass(frozen=True)
class Chunk:
    """Some records: the number of each one's row, and the cells of each column."""

    rows: list[int]
    columns: list[list[object]]

    def record(self, index: int) -> str:
        """Return the texts of a record's cells as a JSON array, for people."""
        texts = [None if values[index] is None else text_of(values[index]) for values in self.columns]
        return json.dumps(texts, ensure_ascii=False)[:RECORD_CHARACTERS]

    def without(self, wrong: set[int]) -> Chunk:
        """Return the others."""
        kept = [index for index in range(len(self.rows)) if index not in wrong]
        return Chunk([self.rows[index] for index in kept], [[v[index] for index in kept] for v in self.columns])


class SheetTable:
    """An open table: the names of its columns, and its records as a stream.

    Args:
        file: the workbook.
        options: where in it the table is.
        rejects: is told rows that are no records, which are left out; None: the first one ends the stream.

    Raises:
        SourceFileError: by every method: the file is not what it claims to be, with sheet and cell.
    """

    def __init__(self, file: SourceFile, options: ExcelOptions, rejects: Rejects | None) -> None:
        self._file = file
        self._options = options
        self._rejects = rejects
        self._opened = ExitStack()
        self._first: Row | None = None
        self._columns: list[int] = []
        self.names: list[str] = []

    def __enter__(self) -> SheetTable:
        try:
            self._open()
        except BaseException:
            self._opened.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def place(self, row: int, column: int) -> str:
        """Return the name of a cell: `Sheet1!B7`.

        Args:
            row: its number (from 1).
            column: the position (from 0) among the table's columns.
        """
        return self._cell(row, self._columns[column])

    def chunks(self) -> Iterator[Chunk]:
        """Yield the records."""
        rows: list[int] = []
        cells: list[dict[int, object]] = []
        for row, values in self._records():
            rows.append(row)
            cells.append(values)
            if len(rows) == _ROWS:
                yield self._chunk(rows, cells)
                rows, cells = [], []
        if rows:
            yield self._chunk(rows, cells)

    def _open(self) -> None:
        try:
            stream = self._opened.enter_context(self._file.open())
        except OSError as error:
            raise SourceFileError(
                f"{self._file}: can't be read: {error.strerror or error}", path=str(self._file)
            ) from error
        workbook = Workbook(Package(stream, self._file))
        sheet = workbook.sheet(self._options.sheet)
        self._sheet = sheet.name
        self._rows = (row for row in sheet_rows(workbook, sheet) if row[1] and row[0] > self._options.skip_rows)
        first = next(self._rows, None)
        if first is None:
            raise self._refused(f"sheet {sheet.name!r} is empty", "name the sheet with the table: --sheet")
        if first[0] != self._options.skip_rows + 1 and (self._options.header or self._options.blank_rows == "refuse"):
            raise self._refused(
                f"sheet {sheet.name!r}: row {self._options.skip_rows + 1} is blank, the table begins in row {first[0]}",
                f"--skip-rows {first[0] - 1}",
            )
        if self._options.header:
            self._read_header(first)
        else:
            self._columns = list(range(max(first[1]) + 1))
            self.names = [f"column{column + 1}" for column in self._columns]
            self._first = first
        self._before = first[0] if self._options.header else first[0] - 1

    def _read_header(self, header: Row) -> None:
        row, cells = header
        twins: dict[str, list[str]] = {}
        for column, value in cells.items():
            if isinstance(value, NoValue):
                raise self._refused(f"{self._cell(row, column)}: {value.text} {value.reason}", value.advice)
            name = text_of(value)
            if name.strip():
                self._columns.append(column)
                self.names.append(name)
                twins.setdefault(name_key(name), []).append(f"{name!r} ({self._cell(row, column)})")
        double = [entry for group in twins.values() if len(group) > 1 for entry in group]
        if double:
            raise self._refused(
                f"column names are equal, or differ only in case or Unicode form: {', '.join(double)}",
                "rename all but one of them in the workbook",
            )
        if not self.names:
            raise self._refused(f"{self._sheet}: row {row} names no column", "--no-header")

    def _records(self) -> Iterator[Row]:
        known = frozenset(self._columns)
        before = self._before
        if self._first is not None:
            yield self._first
            before = self._first[0]
        for row, cells in self._rows:
            if row != before + 1 and self._options.blank_rows == "refuse":
                what = f"is blank, and row {row} is not"
                self._reject(
                    Rejected(before + 1, None, what, ""),
                    f"{self._sheet}: row {before + 1} {what}",
                    "--blank-rows skip leaves blank rows out",
                )
            before = row
            if cells.keys() <= known:
                yield row, cells
                continue
            column = next(column for column in cells if column not in known)
            what = "has a value in a column without a name"
            shown = json.dumps([text_of(value) for value in cells.values()], ensure_ascii=False)[:RECORD_CHARACTERS]
            cell = self._cell(row, column)
            self._reject(
                Rejected(row, None, f"{cell} {what}", shown),
                f"{cell} {what}",
                f"name the column in {self._cell(self._before, column)}" if self._options.header else None,
            )

    def _chunk(self, rows: list[int], cells: Sequence[dict[int, object]]) -> Chunk:
        columns: list[list[object]] = [[values.get(column) for values in cells] for column in self._columns]
        markers = self._options.null_markers
        if markers:
            columns = [[None if type(v) is str and v in markers else v for v in values] for values in columns]
        if self._options.cell_errors == "null":
            columns = [
                [None if isinstance(v, NoValue) and v.error else v for v in values]
                if NoValue in set(map(type, values))
                else values
                for values in columns
            ]
        return Chunk(rows, columns)

    def _reject(self, rejected: Rejected, message: str, next_step: str | None) -> None:
        if self._rejects is None:
            raise self._refused(message, next_step, row=rejected.line)
        self._rejects(rejected)

    def _cell(self, row: int, column: int) -> str:
        return f"{self._sheet}!{column_letters(column)}{row}"

    def _refused(self, message: str, next_step: str | None, row: int | None = None) -> SourceFileError:
        return SourceFileError(
            f"{self._file}: {message}", next_step=next_step, path=str(self._file), sheet=self._sheet, row=row
        )
