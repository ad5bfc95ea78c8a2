"""Excel workbooks, read exactly: a sheet is named, types come from a full scan, and every refusal names its cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from lakeward.errors import SchemaError, SourceFileError
from lakeward.sources.file_format import OTHERS, FileFormat, FileProfile, check_columns
from lakeward.sources.formats.excel_inference import ExcelInference
from lakeward.sources.formats.excel_table import Chunk, ExcelOptions, SheetTable
from lakeward.sources.formats.excel_values import Unfit, check_values, excel_array
from lakeward.sources.formats.scanned_file import ScannedFile
from lakeward.sources.formats.text_values import has_text_form
from lakeward.sources.rejects import NULL_KEY, Rejected, Rejects, misfits
from lakeward.sources.source_file import SourceFile
from lakeward.types.logical import LogicalType, parse_type
from lakeward.types.table import arrow_type


class ExcelFile(FileFormat):
    """A sheet of a workbook (.xlsx, .xlsm): its first row names the columns.

    Rows stream. Memory is bounded by them and by the workbook's shared texts.

    Args:
        file: the workbook; a path is one of this machine.
        options: where in it the table is.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from openpyxl import Workbook
        >>> with TemporaryDirectory() as folder:
        ...     book = Workbook()
        ...     for cells in (["id", "share", "code"], [1, 0.1, "007"], [2, None, ""]):
        ...         book.active.append(cells)
        ...     path = Path(folder, "orders.xlsx")
        ...     book.save(path)
        ...     file = ExcelFile(path)
        ...     types = file.scan().columns
        ...     rows = file.read(types).read_all().to_pylist()
        >>> types
        {'id': 'long', 'share': 'double', 'code': 'string'}
        >>> rows[0]
        {'id': 1, 'share': 0.1, 'code': '007'}
    """

    name = "excel"
    suffixes = (".xlsx", ".xlsm")
    options: ClassVar[type[ExcelOptions]] = ExcelOptions

    def __init__(self, file: Path | SourceFile, options: ExcelOptions | None = None) -> None:
        super().__init__(file, options)
        self._options = options or ExcelOptions()
        self._scanned = ScannedFile(self.file)

    def scan(self, before: FileProfile | None = None, rejects: Rejects | None = None) -> FileProfile:
        """Read the whole sheet once and propose a type for each column, from every value.

        Args:
            before: what was found in files that come before it.
            rejects: is told the rows that can't be read, which are left out; None: the first one ends the scan.

        Raises:
            SourceFileError: the file is not what it claims to be, or a column has values of two kinds, with the cells.
            ColumnMismatch: it has not the columns of those before it.
        """
        state = self._scanned.state()
        rows = 0
        with SheetTable(self.file, self._options, rejects) as table:
            found = {name: ExcelInference() for name in table.names}
            if before is not None and before.columns:
                check_columns(table.names, before.columns, self.file, OTHERS)
                found = before.found
            for chunk in table.chunks():
                if rejects is not None:
                    chunk = _readable(table, chunk, rejects)
                for column, name in enumerate(table.names):
                    try:
                        if name in self.text:
                            check_values(chunk.columns[column])
                        else:
                            found[name].add(chunk.columns[column], partial(_place, table, chunk, column))
                    except Unfit as error:
                        raise self._refused(table, chunk, column, error) from None
                rows += len(chunk.rows)
        self._scanned.remember(state, rows)
        columns = {name: inference.type_text for name, inference in found.items()}
        return FileProfile(columns, rows + (before.rows if before is not None else 0), found)

    def read(self, types: Mapping[str, str], rejects: Rejects | None = None) -> pa.RecordBatchReader:
        """Stream the rows as batches of the given types.

        Args:
            types: the logical type text of every column, in the order that the batches shall have.
            rejects: is told the rows that can't be taken, which are left out; None: the first one ends the read.

        Raises:
            ColumnMismatch: `types` does not name exactly the sheet's columns.
            SchemaError: a type text is wrong, or Excel can't hold the type.
            SourceFileError: the file is not what it claims to be, or has changed since it was scanned. While the
                batches are read, also: a value is not of its type, with cell, column and value.
        """
        logical = {name: parse_type(text) for name, text in types.items()}
        for name, type_ in logical.items():
            if not has_text_form(type_):
                raise SchemaError(f"column {name!r}: Excel has no form for type {type_}", column=name, type=str(type_))
        with SheetTable(self.file, self._options, rejects) as table:
            check_columns(table.names, types, self.file)
        self._scanned.check_state()
        schema = pa.schema([pa.field(name, arrow_type(type_)) for name, type_ in logical.items()])
        return pa.RecordBatchReader.from_batches(schema, self._batches(logical, schema, rejects))

    def _batches(
        self, types: Mapping[str, LogicalType], schema: pa.Schema, rejects: Rejects | None
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        with SheetTable(self.file, self._options, rejects) as table:
            places = {name: table.names.index(name) for name in types}
            for chunk in table.chunks():
                if rejects is not None:
                    typed = [(places[name], type_) for name, type_ in types.items()]
                    chunk = _taken(table, chunk, typed, rejects, [places[name] for name in self.required])
                arrays = []
                for name, type_ in types.items():
                    try:
                        arrays.append(excel_array(chunk.columns[places[name]], type_))
                    except Unfit as error:
                        raise self._refused(table, chunk, places[name], error) from None
                rows += len(chunk.rows)
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        self._scanned.check_rows(rows)

    def _refused(self, table: SheetTable, chunk: Chunk, column: int, error: Unfit) -> SourceFileError:
        row = chunk.rows[error.index]
        name, place = table.names[column], table.place(row, column)
        return SourceFileError(
            f"{self.file}: {place}, column {name!r}: {_told(error)}",
            next_step=error.advice or "correct the cell, or declare the column as string",
            path=str(self.file),
            cell=place,
            row=row,
            column=name,
            value=error.value,
        )


def _place(table: SheetTable, chunk: Chunk, column: int, index: int) -> str:
    return table.place(chunk.rows[index], column)


def _told(error: Unfit) -> str:
    return f"{error.value[:200]!r} {error.reason}" if error.value else error.reason


def _readable(table: SheetTable, chunk: Chunk, rejects: Rejects) -> Chunk:
    """Leave out the rows with a cell that holds no value of any type."""
    return _taken(table, chunk, [(column, None) for column in range(len(chunk.columns))], rejects)


def _taken(
    table: SheetTable,
    chunk: Chunk,
    types: Sequence[tuple[int, LogicalType | None]],
    rejects: Rejects,
    required: Sequence[int] = (),
) -> Chunk:
    """Leave out the rows with a value that does not fit its column's type (None: any), or without a required one."""
    wrong: dict[int, tuple[int, Unfit]] = {}
    for column, type_ in types:
        for row, unfit in misfits(len(chunk.rows), partial(_fault, chunk.columns[column], type_)).items():
            wrong.setdefault(row, (column, unfit))
    for column in required:
        for row, value in enumerate(chunk.columns[column]):
            if value is None:
                wrong.setdefault(row, (column, Unfit(row, "", NULL_KEY)))
    for row, (column, error) in sorted(wrong.items()):
        place = table.place(chunk.rows[row], column)
        rejects(Rejected(chunk.rows[row], table.names[column], f"{place}: {_told(error)}", chunk.record(row)))
    return chunk.without(set(wrong)) if wrong else chunk


def _fault(values: Sequence[object], type_: LogicalType | None, low: int, high: int) -> Unfit | None:
    try:
        if type_ is None:
            check_values(values[low:high])
        else:
            excel_array(values[low:high], type_)
    except Unfit as error:
        return error
    return None
