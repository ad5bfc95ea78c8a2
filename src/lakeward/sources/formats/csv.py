"""CSV files, read exactly: the dialect is declared, types come from a full scan, and every refusal names its line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import SchemaError, SourceFileError
from lakeward.sources.file_format import OTHERS, FileFormat, FileProfile, check_columns
from lakeward.sources.formats.csv_export import write_csv
from lakeward.sources.formats.csv_inference import TypeInference
from lakeward.sources.formats.csv_options import CsvOptions
from lakeward.sources.formats.csv_records import BLOCK_BYTES, RecordReader
from lakeward.sources.formats.csv_sieve import Block
from lakeward.sources.formats.nested_text import is_nested, parse_nested
from lakeward.sources.formats.packed_file import with_packings
from lakeward.sources.formats.scanned_file import ScannedFile
from lakeward.sources.formats.text_values import Unconvertible, has_text_form, parse_text, refusal
from lakeward.sources.rejects import NULL_KEY, Rejects, misfits
from lakeward.sources.source_file import SourceFile
from lakeward.types.logical import LogicalType, parse_type
from lakeward.types.table import arrow_type

__all__ = ["CsvFile", "CsvOptions", "CsvProfile", "write_csv"]


@dataclass(frozen=True)
class CsvProfile(FileProfile):
    """What a scan found. `lines` counts physical lines: rows, header, and the line breaks inside quoted fields."""

    lines: int = 0


class CsvFile(FileFormat):
    """CSV text, also packed (gzip, zstd, bzip2, alone in a zip archive); the dialect is declared.

    Args:
        file: the file; a path is one of this machine.
        options: its dialect.
        block_bytes: how much is read at once; memory is bounded by a small multiple of it, and of the longest record.
        nested: lists and structs are read from JSON text (see `nested_text`), not refused.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "orders.csv")
        ...     _ = path.write_text('id,note\\n1,""\\n2,\\n')
        ...     file = CsvFile(path)
        ...     types = file.scan().columns
        ...     rows = file.read(types).read_all().to_pylist()
        >>> types, rows
        ({'id': 'long', 'note': 'string'}, [{'id': 1, 'note': ''}, {'id': 2, 'note': None}])
    """

    name = "csv"
    suffixes = with_packings(".csv")
    options: ClassVar[type[CsvOptions]] = CsvOptions

    def __init__(
        self,
        file: Path | SourceFile,
        options: CsvOptions | None = None,
        block_bytes: int = BLOCK_BYTES,
        nested: bool = False,
    ) -> None:
        super().__init__(file, options)
        self._nested = nested
        self._options = options or self.options()
        self._block_bytes = block_bytes
        self._scanned = ScannedFile(self.file)

    def scan(self, before: FileProfile | None = None, rejects: Rejects | None = None) -> CsvProfile:
        """Read the whole file once and propose a type for each column, from every value.

        Args:
            before: what was found in files that come before it.
            rejects: is told the records that can't be read, which are left out; None: the first one ends the scan.

        Raises:
            SourceFileError: the file is not what it claims to be, with the physical line.
            ColumnMismatch: it has not the columns of those before it.
        """
        state = self._scanned.state()
        with self._records(rejects) as records:
            inferred = {name: TypeInference() for name in records.names}
            if before is not None and before.columns:
                check_columns(records.names, before.columns, self.file, OTHERS)
                inferred = before.found
            rows = 0
            for block in records.blocks():
                if self.kept is None or self.kept.full:
                    block = self._looked_at(records, block, inferred)
                else:
                    block, texts = records.taken(block)
                    named = zip(records.names, texts, strict=True)
                    typed = {name: _typed(inferred[name], values, name in self.text) for name, values in named}
                    self.kept.add(pa.RecordBatch.from_pydict(typed))
                rows += block.rows
            columns = {name: inference.type_text for name, inference in inferred.items()}
            profile = CsvProfile(columns, rows + (before.rows if before else 0), found=inferred, lines=records.lines)
        self._scanned.remember(state, rows)
        return profile

    def read(self, types: Mapping[str, str], rejects: Rejects | None = None) -> pa.RecordBatchReader:
        """Stream the rows as batches of the given types.

        Args:
            types: the logical type text of every column, in the order that the batches shall have.
            rejects: is told the records that can't be taken, which are left out; None: the first one ends the read.

        Raises:
            ColumnMismatch: `types` does not name exactly the file's columns.
            SchemaError: a type text is wrong, or CSV can't hold the type.
            SourceFileError: the file is not what it claims to be, or has changed since it was scanned. While the
                batches are read, also: a value is not of its type, with line, column and value.
        """
        logical = {name: parse_type(text) for name, text in types.items()}
        for name, type_ in logical.items():
            if not has_text_form(type_) and not self._nested:
                raise SchemaError(f"column {name!r}: CSV has no form for type {type_}", column=name, type=str(type_))
        with self._records(rejects) as records:
            check_columns(records.names, types, self.file)
        self._scanned.check_state()
        schema = pa.schema([pa.field(name, arrow_type(type_)) for name, type_ in logical.items()])
        return pa.RecordBatchReader.from_batches(schema, self._batches(logical, schema, rejects))

    def _looked_at(self, records: RecordReader, block: Block, inferred: Mapping[str, TypeInference]) -> Block:
        """Take a block's values into account, and return it without the records that are left out."""
        # Of a column that has to be text, nothing more is to be found.
        open_ = [
            position
            for position, name in enumerate(records.names)
            if name not in self.text and not inferred[name].settled
        ]
        block, texts = records.taken(block, open_)
        for position, values in zip(open_, texts, strict=True):
            inferred[records.names[position]].add(values)
        return block

    def _batches(
        self, types: Mapping[str, LogicalType], schema: pa.Schema, rejects: Rejects | None
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        with self._records(rejects) as records:
            for block in records.blocks():
                block, texts = records.taken(block)
                arrays, wrong = self._converted(records, block, texts, types)
                if wrong and records.sieve is not None:
                    arrays = _without(arrays, wrong)
                    for row, text, line in records.sieve.records(block, wrong):
                        records.sieve.reject_value(text, line, *wrong[row])
                rows += block.rows
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        self._scanned.check_rows(rows)

    def _converted(
        self, records: RecordReader, block: Block, texts: Sequence[pa.Array], types: Mapping[str, LogicalType]
    ) -> tuple[list[pa.Array], dict[int, tuple[int, str]]]:
        """Return the typed columns, and by row the column and reason of what does not fit, which is null there.

        Raises:
            SourceFileError: a value does not fit, and none may be left out.
        """
        arrays = []
        wrong: dict[int, tuple[int, str]] = {}
        for name, type_ in types.items():
            column = records.names.index(name)
            parse = parse_nested if is_nested(type_) else parse_text
            try:
                arrays.append(parse(texts[column], type_))
            except Unconvertible as error:
                if records.sieve is None:
                    raise self._refused(records, block, column, error) from None
                found = _unfit(texts[column], type_)
                for row, reason in found.items():
                    wrong.setdefault(row, (column, reason))
                arrays.append(parse(_nulled(texts[column], found), type_))
            if records.sieve is not None and name in self.required:
                for row in pc.indices_nonzero(texts[column].is_null()).to_pylist():
                    wrong.setdefault(row, (column, NULL_KEY))
        return arrays, wrong

    def _records(self, rejects: Rejects | None) -> RecordReader:
        return RecordReader(self.file, self._options, self._block_bytes, rejects)

    def _refused(self, records: RecordReader, block: Block, column: int, error: Unconvertible) -> SourceFileError:
        line = records.line_of(block, error.index, column)
        name = records.names[column]
        return SourceFileError(
            f"{self.file}: line {line}, column {name!r}: {error.value[:200]!r} {error.reason}",
            next_step="correct the value, or declare the column as string; --on-error quarantine puts it aside",
            path=str(self.file),
            line=line,
            column=name,
            value=error.value,
        )


def _typed(inference: TypeInference, values: pa.Array, as_text: bool) -> pa.Array:
    return values if as_text else inference.add_typed(values)


def _unfit(texts: pa.Array, type_: LogicalType) -> dict[int, str]:
    """Return what is wrong with each value that is not one of the type, by its position."""
    # What can't be taken is often the same: `n/a`, `-`.
    encoded = texts.dictionary_encode()

    def fault(low: int, high: int) -> str | None:
        part = encoded.dictionary[low:high]
        if not is_nested(type_):
            reason = refusal(part, type_)
            return None if reason is None else f"{part[0].as_py()!r:.200} {reason}"
        try:
            parse_nested(part, type_)
        except Unconvertible as error:
            return f"{error.value!r:.200} {error.reason}"
        return None

    found = misfits(len(encoded.dictionary), fault)
    wrong = pc.is_in(encoded.indices, pa.array(found, pa.int32()), skip_nulls=True)
    return {row: found[encoded.indices[row].as_py()] for row in pc.indices_nonzero(wrong).to_pylist()}


def _mask(size: int, positions: Collection[int]) -> pa.Array:
    return pc.is_in(pa.array(range(size)), pa.array(sorted(positions), pa.int64()))


def _nulled(texts: pa.Array, positions: Collection[int]) -> pa.Array:
    return pc.if_else(_mask(len(texts), positions), pa.scalar(None, pa.string()), texts)


def _without(arrays: Sequence[pa.Array], positions: Collection[int]) -> list[pa.Array]:
    kept = pc.invert(_mask(len(arrays[0]), positions))
    return [array.filter(kept) for array in arrays]
