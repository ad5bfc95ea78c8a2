"""Writes rows as a CSV file that `CsvFile` reads back equal: bare empty is null, quoted empty is the empty string."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import ValueRefused
from lakeward.sources.file_format import check_names
from lakeward.sources.formats.csv_options import DELIMITERS, CsvOptions
from lakeward.sources.formats.replaced_file import replaced_file
from lakeward.sources.formats.text_values import format_text

_SLICE_ROWS = 16_384
_BOM = "\ufeff"


def write_csv(reader: pa.RecordBatchReader, path: Path, options: CsvOptions | None = None) -> int:
    """Write the rows of a stream to a CSV file and return their number.

    The file appears under its name when it is complete and on disk; until then, and after an error, what was there
    before stays. Lines end with a line feed. Memory is bounded by the stream's batches.

    Raises:
        SourceFileError: two columns could not be told apart when the file is read back.
        SchemaError: CSV has no form for a column's type.
        ValueRefused: a text holds a NUL, or a character that the encoding lacks; with column and row (from 1).
        StorageFull: no space left.
        UsageError: the path can't be written.
    """
    rows = 0
    with replaced_file(path) as file:
        for lines, count in csv_lines(reader, path, options):
            file.write(lines)
            rows += count
    return rows


def csv_lines(
    reader: pa.RecordBatchReader, path: Path, options: CsvOptions | None = None
) -> Iterator[tuple[bytes, int]]:
    """Yield the encoded lines of a CSV file, and how many rows are in them.

    Args:
        reader: the rows.
        path: what the file is called in errors.
        options: how it is written.

    Raises:
        SourceFileError, SchemaError, ValueRefused: as `write_csv`.
    """
    options = options or CsvOptions()
    names = reader.schema.names
    if options.header:
        check_names(names, path)
    writer = _Writer(path, options, names)
    mark = codecs.BOM_UTF16_LE if options.encoding == "utf-16" else b""
    yield mark + (writer.encode([pa.array([name]) for name in names], first_row=0) if options.header else b""), 0
    rows = 0
    for batch in reader:
        # Sliced, because the joined text of a batch must stay below the 2 GiB of one Arrow array.
        for start in range(0, batch.num_rows, _SLICE_ROWS):
            part = batch.slice(start, _SLICE_ROWS)
            yield writer.encode(part.columns, first_row=rows + 1), part.num_rows
            rows += part.num_rows


class _Writer:
    """Turns columns into encoded lines. Row 0 is the header."""

    def __init__(self, path: Path, options: CsvOptions, names: Sequence[str]) -> None:
        self.path = path
        self.options = options
        self.names = names
        self._codec = "utf-16-le" if options.encoding == "utf-16" else options.encoding
        # A byte-order mark as the file's first character would be taken off when it is read.
        special = re.escape(options.delimiter) + re.escape(options.quote)
        self._needs_quotes = f"[{special}\r\n{_BOM}]"
        # A bare header of one name is refused where it looks like several.
        self._header_needs_quotes = f"[{special}\r\n{_BOM}{re.escape(''.join(DELIMITERS))}]"
        self._markers = pa.array(["", *options.null_markers])

    def encode(self, columns: Sequence[pa.Array], first_row: int) -> bytes:
        """Return the lines of some rows.

        Raises:
            ValueRefused: a value can't be written in this encoding, or not be read back.
        """
        needs_quotes = self._needs_quotes if first_row else self._header_needs_quotes
        fields = [self._quoted(format_text(column).cast(pa.large_string()), needs_quotes) for column in columns]
        fields[-1] = _joined([fields[-1], pa.scalar("\n", pa.large_string())], "")
        lines = _joined(fields, self.options.delimiter)
        # The joined array is new and has no nulls: its data buffer is the text, line after line.
        data: bytes = lines.buffers()[2].to_pybytes()[: pc.sum(pc.binary_length(lines)).as_py()]
        if b"\0" in data:
            raise self._refused(columns, first_row, "\0", "a NUL, which CSV files can't hold")
        if self._codec == "utf-8":
            return data
        try:
            return data.decode().encode(self._codec)
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            why = f"{character!r}, which {self.options.encoding} can't hold"
            raise self._refused(columns, first_row, character, why) from None

    def _quoted(self, values: pa.Array, needs_quotes: str) -> pa.Array:
        must = pc.or_(
            pc.match_substring_regex(values, needs_quotes),
            pc.is_in(values, self._markers.cast(pa.large_string())),
        )
        # Most columns need none; nulls say nothing here.
        if not pc.any(must, min_count=0).as_py():
            return values
        quote = self.options.quote
        marks = pa.scalar(quote, pa.large_string())
        quoted = _joined([marks, pc.replace_substring(values, quote, quote * 2), marks], "")
        return pc.if_else(must, quoted, values)

    def _refused(self, columns: Sequence[pa.Array], first_row: int, character: str, why: str) -> ValueRefused:
        for name, column in zip(self.names, columns, strict=True):
            row = pc.index(pc.match_substring(format_text(column), character), True).as_py()
            if row >= 0:
                number = first_row + row
                where = f"row {number}" if number else "the header"
                return ValueRefused(
                    f"{self.path}: column {name!r}, {where} holds {why}",
                    safe="the file was not written",
                    next_step="export with encoding utf-8, or to Parquet",
                    path=str(self.path),
                    column=name,
                    row=number,
                )
        raise AssertionError(f"{character!r} is in the text, but in no column")


def _joined(parts: Sequence[pa.Array | pa.Scalar], separator: str) -> pa.Array:
    return pc.binary_join_element_wise(
        *parts, pa.scalar(separator, pa.large_string()), null_handling="replace", null_replacement=""
    )
