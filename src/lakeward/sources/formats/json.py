"""JSON files, read exactly: one object for each row, types from a full scan, every refusal with its line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from lakeward.errors import ColumnMismatch, SourceFileError
from lakeward.sources.file_format import FileFormat, FileProfile, FormatOptions
from lakeward.sources.formats.json_inference import JsonInference
from lakeward.sources.formats.json_records import BLOCK_BYTES, Chunk, json_chunks
from lakeward.sources.formats.json_sieve import Sieve
from lakeward.sources.formats.json_sieve import shown as record_shown
from lakeward.sources.formats.json_values import Unfit, json_array, json_texts, shown
from lakeward.sources.formats.packed_file import with_packings
from lakeward.sources.formats.scanned_file import ScannedFile
from lakeward.sources.rejects import NULL_KEY, Rejected, Rejects, misfits
from lakeward.sources.source_file import SourceFile
from lakeward.types.logical import LogicalType, parse_type
from lakeward.types.schema import name_key
from lakeward.types.table import arrow_type

Typed = Callable[[Sequence[object], LogicalType], pa.Array]


class JsonFile(FileFormat):
    """JSON text in UTF-8, also packed: one object on each line, or one array of objects.

    A key that an object lacks is null in its row.

    Args:
        file: the file; a path is one of this machine.
        options: of JSON nothing has to be told.
        block_bytes: how much is read at once; memory is bounded by a small multiple of it, and of the longest object.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "orders.ndjson")
        ...     _ = path.write_text('{"id": 9007199254740993}\\n{"id": 2, "tags": ["new"]}\\n')
        ...     file = JsonFile(path)
        ...     types = file.scan().columns
        ...     rows = file.read(types).read_all().to_pylist()
        >>> types, rows
        ({'id': 'long', 'tags': 'json'}, [{'id': 9007199254740993, 'tags': None}, {'id': 2, 'tags': '["new"]'}])
    """

    name = "json"
    names_first = False
    suffixes = with_packings(".ndjson", ".jsonl", ".json")

    def __init__(
        self, file: Path | SourceFile, options: FormatOptions | None = None, block_bytes: int = BLOCK_BYTES
    ) -> None:
        super().__init__(file, options)
        self._block_bytes = block_bytes
        self._scanned = ScannedFile(self.file)

    def scan(self, before: FileProfile | None = None, rejects: Rejects | None = None) -> FileProfile:
        """Read the whole file once and propose a type for each column, from every value.

        Columns stand in the order in which their keys first come. A file after others may have keys that they have not.

        Args:
            before: what was found in files that come before it.
            rejects: is told the records that can't be read, which are left out; None: the first one ends the scan.

        Raises:
            SourceFileError: the file is not what it claims to be, with line and character; a column has values of two
                kinds; two keys differ only in case or Unicode form; no object has a key.
        """
        state = self._scanned.state()
        columns: _Columns = before.found if before is not None and before.columns else _Columns()
        columns.file = self.file
        columns.text = self.text
        rows = 0
        for chunk in self._chunks(rejects):
            columns.add(chunk)
            rows += len(chunk.rows)
        self._scanned.remember(state, rows)
        if before is None:
            columns.check_known()
        return FileProfile(columns.types(), rows + (before.rows if before is not None else 0), columns)

    def read(self, types: Mapping[str, str], rejects: Rejects | None = None) -> pa.RecordBatchReader:
        """Stream the rows as batches of the given types.

        Args:
            types: the logical type text of every column, in the order that the batches shall have. One that no object
                has is null in every row.
            rejects: is told the records that can't be taken, which are left out; None: the first one ends the read.

        Raises:
            SchemaError: a type text is wrong.
            SourceFileError: the file can't be read, or has changed since it was scanned. While the batches are read,
                also: it is not what it claims to be, or a value is not of its type, with line, column and value.
            ColumnMismatch: while the batches are read: an object has a key that `types` has not, with its line.
        """
        logical = {name: parse_type(text) for name, text in types.items()}
        self._scanned.state()
        self._scanned.check_state()
        schema = pa.schema([pa.field(name, arrow_type(type_)) for name, type_ in logical.items()])
        return pa.RecordBatchReader.from_batches(schema, self._batches(logical, schema, rejects))

    def _batches(
        self, types: Mapping[str, LogicalType], schema: pa.Schema, rejects: Rejects | None
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        for chunk in self._chunks(rejects):
            wrong = self._wrong_keys(chunk, types, rejects)
            columns = {name: [row.get(name) for row in chunk.rows] for name in types}
            arrays = []
            for name, type_ in types.items():
                typed = _as_text if name in self.text else json_array
                try:
                    arrays.append(typed(columns[name], type_))
                except Unfit as error:
                    if rejects is None:
                        raise value_refused(self.file, chunk, name, error) from None
                    for row, unfit in _unfit(columns[name], type_, typed).items():
                        wrong.setdefault(row, (f"{name}{unfit.path}", f"{shown(unfit.value)} {unfit.reason}"))
                        columns[name][row] = None
                    arrays.append(typed(columns[name], type_))
                if rejects is not None and name in self.required:
                    for row, value in enumerate(columns[name]):
                        if value is None:
                            wrong.setdefault(row, (name, NULL_KEY))
            rows += len(chunk.rows)
            if rejects is not None and wrong:
                kept = pa.array([row not in wrong for row in range(len(chunk.rows))], pa.bool_())
                arrays = [array.filter(kept) for array in arrays]
                for row, (column, reason) in sorted(wrong.items()):
                    rejects(Rejected(chunk.lines[row], column, reason, record_shown(chunk.texts[row])))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        self._scanned.check_rows(rows)

    def _chunks(self, rejects: Rejects | None) -> Iterator[Chunk]:
        return json_chunks(self.file, self._block_bytes, Sieve(self.file, rejects) if rejects else None)

    def _wrong_keys(
        self, chunk: Chunk, types: Mapping[str, LogicalType], rejects: Rejects | None
    ) -> dict[int, tuple[str | None, str]]:
        """Return the rows with a key that `types` has not, and what is wrong.

        Raises:
            ColumnMismatch: there is one, and none may be left out.
        """
        wrong: dict[int, tuple[str | None, str]] = {}
        for row, (keys, line) in enumerate(zip(chunk.rows, chunk.lines, strict=True)):
            if keys.keys() <= types.keys():
                continue
            unexpected = [name for name in keys if name not in types]
            has = f"has {', '.join(map(repr, unexpected))}; the declared columns are {', '.join(types)}"
            wrong[row] = (None, has)
            if rejects is None:
                raise ColumnMismatch(
                    f"{self.file}: line {line} {has}",
                    path=str(self.file),
                    line=line,
                    missing=[],
                    unexpected=unexpected,
                )
        return wrong


def _as_text(values: Sequence[object], type_: LogicalType) -> pa.Array:
    return json_array(json_texts(values), type_)


def _unfit(values: Sequence[object], type_: LogicalType, typed: Typed) -> dict[int, Unfit]:
    def fault(low: int, high: int) -> Unfit | None:
        try:
            typed(values[low:high], type_)
        except Unfit as error:
            return error
        return None

    return misfits(len(values), fault)


class _Columns:
    """The columns that scans have found so far; `file` is the one that is scanned, `text` are text by choice."""

    file: SourceFile
    text: Collection[str] = ()

    def __init__(self) -> None:
        self._found: dict[str, JsonInference] = {}
        self._twins: dict[str, tuple[str, str]] = {}

    def add(self, chunk: Chunk) -> None:
        """Take some objects into account."""
        for row, line in zip(chunk.rows, chunk.lines, strict=True):
            if not row.keys() <= self._found.keys():
                for name in row:
                    self._add_name(name, line)
        for name, inference in self._found.items():
            if name in self.text:
                continue
            try:
                inference.add([row.get(name) for row in chunk.rows], chunk.lines, self.file)
            except Unfit as error:
                raise value_refused(self.file, chunk, name, error) from None

    def check_known(self) -> None:
        """Refuse a file in which no column is."""
        if not self._found:
            raise SourceFileError(
                f"{self.file}: no object in it has a key, so no column is known",
                next_step="declare the columns: --columns",
                path=str(self.file),
            )

    def types(self) -> dict[str, str]:
        """Return the proposed type of each column."""
        return {name: inference.type_text for name, inference in self._found.items()}

    def _add_name(self, name: str, line: int) -> None:
        if name in self._found:
            return
        twin, twin_place = self._twins.setdefault(name_key(name), (name, f"line {line} of {self.file}"))
        if twin != name or not name.strip():
            what = f"{name!r} and {twin!r} of {twin_place} differ only in case or Unicode form"
            raise SourceFileError(
                f"{self.file}: line {line}: {what if name.strip() else 'a key is empty'}",
                next_step="rename the key in the file",
                path=str(self.file),
                line=line,
                columns=[twin, name],
            )
        self._found[name] = JsonInference()


def value_refused(file: SourceFile, chunk: Chunk, name: str, error: Unfit) -> SourceFileError:
    """Return the error for a value of the column `name`."""
    line, column = chunk.lines[error.index], f"{name}{error.path}"
    return SourceFileError(
        f"{file}: line {line}, column {column!r}: {shown(error.value)} {error.reason}",
        next_step="correct the value, or declare the column with a type that holds it; json holds any",
        path=str(file),
        line=line,
        column=column,
        value=shown(error.value),
    )
