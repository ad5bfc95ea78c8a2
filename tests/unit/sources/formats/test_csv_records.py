"""The fast way through a file and the slow walk over its grammar agree on every text, whatever the block size."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakeward.errors import SourceFileError
from lakeward.sources.formats.csv_dialect import Dialect, Malformed
from lakeward.sources.formats.csv_options import CsvOptions
from lakeward.sources.formats.csv_records import RecordReader
from lakeward.sources.source_file import LocalFile

Outcome = tuple[list[list[str | None]], int | None]


def by_the_walk(text: str, width: int) -> Outcome:
    """Return the records up to the first wrong one, and the line of that one."""
    rows: list[list[str | None]] = []
    try:
        for record in Dialect(",", '"').walk(text.encode(), 1, final=True):
            if len(record.fields) != width:
                return rows, record.fields[0].line
            rows.append([field.value if field.value or field.quoted else None for field in record.fields])
    except Malformed as error:
        return rows, error.line
    return rows, None


def by_the_reader(text: str, block_bytes: int) -> Outcome:
    rows: list[list[str | None]] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_bytes(text.encode())
        try:
            with RecordReader(LocalFile(path), CsvOptions(header=False), block_bytes) as reader:
                for block in reader.blocks():
                    columns = [column.to_pylist() for column in reader.columns(block)]
                    rows += [list(row) for row in zip(*columns, strict=True)]
                    for row in range(block.rows):
                        assert reader.line_of(block, row, 0) >= block.line
        except SourceFileError as error:
            return rows, int(str(error.fields["line"]))
    return rows, None


@settings(deadline=None, max_examples=1_000)
@given(
    text=st.text(st.sampled_from('ab",\r\n\ufeff'), min_size=1, max_size=24),
    block_bytes=st.sampled_from([1, 2, 3, 8, 1 << 20]),
)
@example(text='a,"b""\n"\n"",x"y', block_bytes=3)
@example(text='"\n""\n",a\r\n\n', block_bytes=1)
def test_f04_every_text_is_read_as_the_grammar_says(text: str, block_bytes: int) -> None:
    # At the very start of the file the mark is taken off.
    text = text.lstrip("\ufeff") or "a"
    try:
        record = next(Dialect(",", '"').walk(text.encode(), 1, final=True))
        width = len(record.fields)
    except Malformed:
        width = 1
    rows, line = by_the_walk(text, width)
    read, read_line = by_the_reader(text, block_bytes)
    if line is None:
        assert (read, read_line) == (rows, None)
    else:
        # A wrong record is always refused by its line; whole blocks before it may have been handed out.
        assert read_line == line
        assert read == rows[: len(read)]
