"""Cuts a CSV file into blocks of whole records, and blocks into columns of text, checking every record on the way.

The columns come from PyArrow's parser, which is fast and forgiving: it takes an open quote at the end of the file, text
after a closing quote and empty lines without a word, and its messages know no line. So a block goes to it only when
its quotes stand plainly and nothing else is suspicious; otherwise `Dialect.walk` reads the block first and has the
last word. Either way the number of records is counted without the parser, and must be equal.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator
from types import TracebackType

import pyarrow as pa
import pyarrow.csv as pacsv

from lakeward.errors import SourceFileError
from lakeward.sources.file_format import check_names
from lakeward.sources.formats.csv_dialect import Dialect, Malformed, Record
from lakeward.sources.formats.csv_options import DELIMITERS, CsvOptions
from lakeward.sources.formats.csv_sieve import Block, Sieve
from lakeward.sources.formats.csv_source import TextSource
from lakeward.sources.formats.escaped_text import fault_of
from lakeward.sources.rejects import Rejects
from lakeward.sources.source_file import SourceFile

BLOCK_BYTES = 4 << 20
MAX_RECORD_BYTES = 128 << 20
"""A longer record is refused, so that a quote that is never closed does not pull the whole file into memory."""


class RecordReader:
    """One pass over the records of a CSV file.

    Args:
        file: the file.
        options: its dialect.
        block_bytes: how much is read at once.
        rejects: is told the records that can't be read, which are left out; None: the first one ends the read.

    Raises:
        SourceFileError: by the constructor and while iterating: the file breaks the grammar, with the physical line.
    """

    def __init__(
        self, file: SourceFile, options: CsvOptions, block_bytes: int = BLOCK_BYTES, rejects: Rejects | None = None
    ) -> None:
        self.file = file
        self.options = options
        self.lines = 0
        """Physical lines that the blocks so far, and the header, took up."""
        self._dialect = Dialect(options.delimiter, options.quote)
        self._block_bytes = block_bytes
        self._pending = b""
        self.names: list[str] = []
        self._source = TextSource(file, options.encoding, escape=rejects is not None, lines_read=self._lines_read)
        try:
            self._read_header()
            self._right_record = self._dialect.record_pattern(len(self.names))
            self.sieve = None if rejects is None else Sieve(self._dialect, self.names, options.encoding, rejects)
        except SourceFileError:
            self._source.close()
            raise

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._source.close()

    def blocks(self) -> Iterator[Block]:
        """Yield the records behind the header."""
        size = self._block_bytes
        while True:
            fresh = self._source.read(size)
            data = self._pending + fresh
            end, block = self._whole_records(data)
            if end:
                self.lines += self._lines_of(data, end, block)
                if block.rows:
                    yield block
                size = self._block_bytes
            elif fresh:
                self._refuse_endless(data)
                # Doubled, so that a record of n bytes is looked at only O(log n) times.
                size = max(size, len(data))
            self._pending = data[end:]
            if not fresh:
                break
        if self._pending:
            # The last line has no end of its own, or a quote is open: the walk tells which.
            block = self._read_exactly(self._pending, final=True)[1]
            self.lines += self._pending.count(b"\n") + (not self._pending.endswith(b"\n"))
            if block.rows:
                yield block

    def taken(self, block: Block, wanted: Collection[int] | None = None) -> tuple[Block, list[pa.Array]]:
        """Return the block's columns, and the block itself, without the records that are left out if any may be.

        Args:
            block: whole records.
            wanted: see `columns`.

        Raises:
            SourceFileError: see `columns`.
        """
        try:
            return block, self.columns(block, wanted)
        except SourceFileError:
            if self.sieve is None:
                raise
            right = self._sifted(self.sieve, block.data, block.line, final=True)[1]
            return right, self.columns(right, wanted)

    def columns(self, block: Block, wanted: Collection[int] | None = None) -> list[pa.Array]:
        """Return the block's columns as text; a bare empty field and a bare null marker are null.

        Args:
            block: whole records.
            wanted: the positions (from 0) of the columns that are needed; None: all.

        Raises:
            SourceFileError: a record has another number of fields than the header, with its physical line.
        """
        names = [str(position) for position in range(len(self.names))]
        data = block.data
        if not data:
            # The parser knows no table without rows.
            return [pa.array([], pa.string()) for position in range(len(names)) if wanted is None or position in wanted]
        # The parser drops a byte-order mark at the start of its input, where it is data: an empty line goes before.
        marked = data.startswith(codecs.BOM_UTF8)
        try:
            table = pacsv.read_csv(
                pa.BufferReader(b"\n" + data if marked else data),
                read_options=pacsv.ReadOptions(
                    use_threads=False, block_size=len(data) + 2, column_names=names, skip_rows=int(marked)
                ),
                parse_options=pacsv.ParseOptions(
                    delimiter=self.options.delimiter,
                    quote_char=self.options.quote,
                    double_quote=True,
                    escape_char=False,
                    newlines_in_values=True,
                    ignore_empty_lines=False,
                ),
                convert_options=pacsv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=["", *self.options.null_markers],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    include_columns=[name for name in names if wanted is None or name == "0" or int(name) in wanted],
                ),
            )
        except pa.ArrowInvalid as error:
            self._check_records(block.data, block.line, final=True)
            raise SourceFileError(
                f"{self.file}: the records from line {block.line} can't be read: {error}",
                path=str(self.file),
                line=block.line,
            ) from error
        if table.num_rows != block.rows:
            raise SourceFileError(
                f"{self.file}: {block.rows} records from line {block.line} were read as {table.num_rows}",
                path=str(self.file),
                line=block.line,
            )
        if len(names) > 1 and table["0"].null_count and _has_empty_line(block.data):
            # The parser takes it for a record of nulls. The walk tells it from one inside quotes.
            self._check_records(block.data, block.line, final=True)
        return [_one_array(table[name]) for name in names if wanted is None or int(name) in wanted]

    def line_of(self, block: Block, row: int, column: int) -> int:
        """Return the physical line on which a field of the block starts; row and column count from 0."""
        for number, record in enumerate(self._dialect.walk(block.data, block.line, final=True)):
            if number == row:
                return record.fields[column].line
        raise IndexError(row)

    def _read_header(self) -> None:
        first = self._first_record()
        if first is None:
            raise SourceFileError(
                f"{self.file}: is empty, without even a header",
                next_step="write the column names into its first line",
                path=str(self.file),
                line=1,
            )
        if not self.options.header:
            self.names = [f"column{position}" for position in range(1, len(first.fields) + 1)]
            return
        self.names = [field.value for field in first.fields]
        if len(self.names) == 1 and not first.fields[0].quoted:
            self._refuse_other_delimiter(self.names[0])
        for name in self.names:
            if fault := fault_of(name, self.options.encoding):
                raise SourceFileError(f"{self.file}: the header {fault}", path=str(self.file), line=1)
        check_names(self.names, self.file)
        header, self._pending = self._pending[: first.end], self._pending[first.end :]
        self.lines = header.count(b"\n") + (not header.endswith(b"\n"))

    def _refuse_other_delimiter(self, header: str) -> None:
        """Refuse a header of one name that looks like several with another delimiter, unless that was meant."""
        if "delimiter" in self.options.model_fields_set:
            return
        found = [each for each in DELIMITERS if each in header and all(part.strip() for part in header.split(each))]
        if found and self.options.delimiter not in found:
            shown = "\\t" if found[0] == "\t" else found[0]
            raise SourceFileError(
                f"{self.file}: its header is one column {header!r}, which seems to be several with {shown!r} between",
                next_step=f"add --delimiter '{shown}'; if it is one column, --delimiter '{self.options.delimiter}'",
                path=str(self.file),
                line=1,
                delimiter=found[0],
            )

    def _first_record(self) -> Record | None:
        size = self._block_bytes
        fresh = b"-"
        while fresh:
            fresh = self._source.read(size)
            self._pending += fresh
            try:
                record = next(self._dialect.walk(self._pending, 1, final=not fresh), None)
            except Malformed as error:
                raise self._malformed(error) from error
            if record is not None:
                return record
            self._refuse_endless(self._pending)
            size = max(size, len(self._pending))
        return None

    def _whole_records(self, data: bytes) -> tuple[int, Block]:
        """Return the length of the complete records at the start of `data`, and those of them that are taken."""
        if not self._dialect.is_plain(data):
            return self._read_exactly(data, final=False)
        end = self._dialect.last_line_end(data)
        whole = data[:end]
        if self._is_suspicious(whole):
            return self._read_exactly(whole, final=True)
        return end, Block(whole, self.lines + 1, self._dialect.count_line_ends(whole))

    def _read_exactly(self, data: bytes, final: bool) -> tuple[int, Block]:
        line = self.lines + 1
        if self.sieve is not None:
            return self._sifted(self.sieve, data, line, final)
        end, rows = self._check_records(data, line, final)
        whole = data[:end]
        return end, Block(whole if whole.endswith(b"\n") else whole + b"\n", line, rows)

    def _sifted(self, sieve: Sieve, data: bytes, line: int, final: bool) -> tuple[int, Block]:
        try:
            return sieve.sift(data, line, final)
        except Malformed as error:
            raise self._malformed(error) from error

    def _is_suspicious(self, data: bytes) -> bool:
        lone_return = b"\r" in data and data.count(b"\r") != data.count(b"\r\n")
        return lone_return or b"\0" in data

    def _lines_read(self) -> int:
        return self.lines + self._pending.count(b"\n")

    def _lines_of(self, data: bytes, end: int, block: Block) -> int:
        """Return how many lines the records take up that end at `end`."""
        if self.sieve is None and self._dialect.quote not in block.data:
            return block.rows
        return data.count(b"\n", 0, end)

    def _check_records(self, data: bytes, line: int, final: bool) -> tuple[int, int]:
        """Walk the records, refuse one that breaks the grammar or is ragged, and return their length and number."""
        rows, end = 0, 0
        while match := self._right_record.match(data, end):
            rows, end = rows + 1, match.end()
        start = end
        try:
            for record in self._dialect.walk(data[start:], line + data.count(b"\n", 0, start), final):
                if len(record.fields) != len(self.names):
                    text = data[end : start + record.end]
                    raise self._ragged(len(record.fields), record.fields[0].line, text)
                rows, end = rows + 1, start + record.end
        except Malformed as error:
            raise self._malformed(error) from error
        return end, rows

    def _ragged(self, found: int, line: int, text: bytes) -> SourceFileError:
        shown = text.decode().rstrip("\r\n")
        what = f"has {found} fields: {shown[:80]!r}" if shown else "is empty"
        return SourceFileError(
            f"{self.file}: line {line} {what}; {len(self.names)} fields are expected",
            next_step="correct the line; or put such lines aside, with file, line and text: --on-error quarantine",
            path=str(self.file),
            line=line,
            expected=len(self.names),
            found=found,
        )

    def _malformed(self, error: Malformed) -> SourceFileError:
        position = error.position
        column = self.names[position] if position < len(self.names) else None
        where = repr(column) if column is not None else str(position + 1)
        return SourceFileError(
            f"{self.file}: line {error.line}, column {where}: {error.reason}",
            next_step=f"quote the field with {self.options.quote}, and double the quotes inside it",
            path=str(self.file),
            line=error.line,
            column=column,
        )

    def _refuse_endless(self, data: bytes) -> None:
        if len(data) > MAX_RECORD_BYTES:
            raise SourceFileError(
                f"{self.file}: the record that starts on line {self.lines + 1} is longer than "
                f"{MAX_RECORD_BYTES >> 20} MiB; is a quote left open?",
                path=str(self.file),
                line=self.lines + 1,
            )


def _has_empty_line(data: bytes) -> bool:
    return data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or (b"\r" in data and b"\n\r\n" in data)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
