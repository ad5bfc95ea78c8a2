"""Files whose own schema types their columns: what is read from them is checked, converted exactly, and counted."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import ColumnMismatch, SchemaError, SourceFileError, ValueRefused
from lakeward.sources.file_format import OTHERS, FileFormat, FileProfile, check_columns, check_names
from lakeward.sources.rejects import NULL_KEY, RECORD_CHARACTERS, Rejected, Rejects, misfits
from lakeward.types.arrow_values import exact
from lakeward.types.logical import LogicalType, parse_type, simple
from lakeward.types.nearest import logical_type
from lakeward.types.refusal import Origin
from lakeward.types.table import arrow_type

# What a damaged file makes PyArrow raise, by where the damage is.
DAMAGE = (pa.ArrowException, OSError, ValueError)


_WIDER = (("long", "int"), ("double", "float"))
"""Types, and those whose every value they hold."""


@dataclass(frozen=True)
class Contents:
    """An open file: its schema, its batches in order, and the number of rows that it states (None: it states none)."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    rows: int | None


class TypedFile(FileFormat):
    """A file in a format that PyArrow reads batch by batch."""

    @abstractmethod
    def _opened(self) -> AbstractContextManager[Contents]:
        """Open the file.

        Raises:
            SourceFileError: it is none of the format, or a truncated one.
        """

    @contextmanager
    def _bytes(self) -> Iterator[pa.NativeFile]:
        """Hold the file open.

        Raises:
            SourceFileError: it can't be read.
        """
        try:
            opened = self.file.open()
        except OSError as error:
            raise self._damaged("can't be read", error) from error
        with closing(opened):
            yield opened if isinstance(opened, pa.NativeFile) else pa.PythonFile(opened, "r")

    def scan(self, before: FileProfile | None = None, rejects: Rejects | None = None) -> FileProfile:
        """Return the types that the file's schema states, and its row count; rows are read only if it states none.

        Args:
            before: what was found in files that come before it. Of int and long, or float and double, the wider one is
                proposed; other types have to be the same in all of them.
            rejects: nothing is told to it: a file is damaged as a whole.

        Raises:
            SourceFileError: not a file of the format, or a damaged one; a column has a type that no dataset can hold,
                or another one than in the files before it.
            ColumnMismatch: it has not the columns of those before it.
        """
        with self._opened() as contents:
            types = self._types(contents.schema)
            untold = {field.name for field in contents.schema if pa.types.is_null(field.type)}
            found = {name: None if name in untold else str(type_) for name, type_ in types.items()}
            if before is not None and before.columns:
                check_columns(list(types), before.columns, self.file, OTHERS)
                found = {name: self._joined(name, told, found[name]) for name, told in before.found.items()}
            rows = contents.rows
            if rows is None:
                rows = sum(batch.num_rows for batch in self._checked(contents))
        columns = {name: told or "string" for name, told in found.items()}
        return FileProfile(columns, rows + (before.rows if before is not None else 0), found)

    def _joined(self, name: str, before: str | None, now: str | None) -> str | None:
        """Return the type that holds the values of both; None: nothing is known of one that has no values."""
        if before is None or now is None or before == now:
            return now if before is None else before
        for wider, narrower in _WIDER:
            if {before, now} == {wider, narrower}:
                return wider
        raise SourceFileError(
            f"{self.file}: column {name!r} is {now}, and {before} in the files before it",
            next_step=f"declare the column with a type that holds both: --column '{name}=TYPE'",
            path=str(self.file),
            column=name,
        )

    def read(self, types: Mapping[str, str], rejects: Rejects | None = None) -> pa.RecordBatchReader:
        """Stream the rows as batches of the given types.

        A column may be read as another type where no value changes, for instance a decimal without fraction as long;
        `lakeward.types.arrow_values.exact` has the list.

        Args:
            types: the logical type text of every column, in the order that the batches shall have.
            rejects: is told the rows that can't be taken, which are left out; None: the first one ends the read.

        Raises:
            ColumnMismatch: `types` does not name exactly the file's columns.
            SchemaError: a type text is wrong.
            SourceFileError: the file is damaged. While the batches are read, also: a value does not fit, with row
                (from 1) and column, or no value of the column could.
        """
        logical = {name: parse_type(text) for name, text in types.items()}
        with self._opened() as contents:
            check_columns(list(self._types(contents.schema)), types, self.file)
        schema = pa.schema([pa.field(name, arrow_type(type_)) for name, type_ in logical.items()])
        return pa.RecordBatchReader.from_batches(schema, self._batches(logical, schema, rejects))

    def _batches(
        self, types: Mapping[str, LogicalType], schema: pa.Schema, rejects: Rejects | None
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        with self._opened() as contents:
            for batch in self._checked(contents):
                rows_before = rows
                rows += batch.num_rows
                if rejects is not None:
                    batch = self._sifted(batch, types, rows_before, rejects)
                arrays = [
                    self._converted(batch.column(name), name, type_, rows_before) for name, type_ in types.items()
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _sifted(
        self, batch: pa.RecordBatch, types: Mapping[str, LogicalType], rows_before: int, rejects: Rejects
    ) -> pa.RecordBatch:
        """Return the rows that can be taken, and tell the others."""
        wrong: dict[int, tuple[str, str]] = {}
        for name, type_ in types.items():
            found = misfits(batch.num_rows, partial(self._unfit, batch.column(name), name, type_))
            for row, reason in found.items():
                wrong.setdefault(row, (name, reason))
            if name in self.required:
                for row in pc.indices_nonzero(batch.column(name).is_null()).to_pylist():
                    wrong.setdefault(row, (name, NULL_KEY))
        for row, (name, reason) in sorted(wrong.items()):
            rejects(Rejected(rows_before + row + 1, name, reason, _text(batch.slice(row, 1))))
        kept = pa.array([row not in wrong for row in range(batch.num_rows)], pa.bool_()) if wrong else None
        return batch if kept is None else batch.filter(kept)

    def _unfit(self, values: pa.Array, name: str, type_: LogicalType, low: int, high: int) -> str | None:
        try:
            exact(values.slice(low, high - low), type_, Origin(str(self.file), 1, lambda index: {}).column(name))
        except ValueRefused as error:
            return f"{error.fields['value']} {error.fields['reason']}"
        except ColumnMismatch:
            # No value of the column fits: that is no matter of single rows.
            return None
        return None

    def _checked(self, contents: Contents) -> Iterator[pa.RecordBatch]:
        rows = 0
        while True:
            try:
                batch = next(contents.batches, None)
                if batch is None:
                    break
                # Text that is not UTF-8 passes the reader, and would fail in some later tool.
                batch.validate(full=True)
            except DAMAGE as error:
                raise self._damaged(f"is damaged behind row {rows}", error) from error
            rows += batch.num_rows
            yield batch
        if contents.rows is not None and rows != contents.rows:
            raise SourceFileError(
                f"{self.file}: states {contents.rows} rows and holds {rows}",
                path=str(self.file),
                stated=contents.rows,
                found=rows,
            )

    def _converted(self, values: pa.Array, name: str, type_: LogicalType, rows_before: int) -> pa.Array:
        origin = Origin(str(self.file), rows_before + 1, lambda index: {})
        try:
            return exact(values, type_, origin.column(name))
        except (ValueRefused, ColumnMismatch) as error:
            row = error.fields.get("row")
            value = error.fields.get("value")
            where = f"row {row}, " if row is not None else ""
            what = f"{value} {error.fields['reason']}" if row is not None else f"{values.type} can't be read as {type_}"
            raise SourceFileError(
                f"{self.file}: {where}column {name!r}: {what}",
                next_step="declare the column with a type that holds the file's values",
                path=str(self.file),
                row=row,
                column=name,
                value=value,
            ) from error

    def _types(self, schema: pa.Schema) -> dict[str, LogicalType]:
        check_names(schema.names, self.file)
        types = {}
        for field in schema:
            try:
                # Of a column without values nothing is known.
                types[field.name] = simple("string") if pa.types.is_null(field.type) else logical_type(field.type)
            except SchemaError as error:
                raise SourceFileError(
                    f"{self.file}: column {field.name!r} is {field.type}, which no dataset can hold",
                    next_step="leave the column out, or write it as another type",
                    path=str(self.file),
                    column=field.name,
                ) from error
        return types

    def _damaged(self, what: str, error: BaseException) -> SourceFileError:
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            what = "can't be read"
        return SourceFileError(f"{self.file}: {what}: {error}", path=str(self.file))


def _text(row: pa.RecordBatch) -> str:
    """Return a row as JSON, shortened."""
    shown = {name: _shown(values[0]) for name, values in zip(row.schema.names, row.columns, strict=True)}
    return json.dumps(shown, ensure_ascii=False, default=_plain)[:RECORD_CHARACTERS]


def _shown(value: pa.Scalar) -> object:
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        # Python has no such date, or none so exact.
        return value.cast(pa.string()).as_py()


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
