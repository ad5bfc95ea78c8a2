"""Records that can't be taken: each is told with its line, column, reason and text, and all others are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakeward.errors import SourceFileError
from lakeward.sources.file_format import FileFormat
from lakeward.sources.formats.csv import CsvFile, CsvOptions
from lakeward.sources.formats.json import JsonFile
from lakeward.sources.formats.parquet import ParquetFile
from lakeward.sources.rejects import RECORD_CHARACTERS, Rejected

BLOCKS = [pytest.param(1, id="1-byte blocks"), pytest.param(7, id="7-byte blocks"), pytest.param(1 << 20, id="one")]
TYPES = {"id": "long", "n": "string"}

Row = tuple[object, ...]


def taken(file: FileFormat, types: Mapping[str, str] = TYPES) -> tuple[list[Row], list[Rejected]]:
    rejected: list[Rejected] = []
    rows = [tuple(row.values()) for row in file.read(types, rejected.append).read_all().to_pylist()]
    return rows, sorted(rejected, key=lambda each: each.line)


def told(rejected: list[Rejected]) -> list[tuple[int, str | None, str]]:
    return [(each.line, each.column, each.reason) for each in rejected]


@pytest.mark.parametrize("block_bytes", BLOCKS)
def test_f04_csv_records_that_are_not_right_are_told_and_the_others_read(tmp_path: Path, block_bytes: int) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(
        b'id,n\n1,a\n2\n3,b,c\n\n4,"x\ny"\n5,\xe9t\xc3\xa9\n6,a\x00b\nx7,"q\nz"\n8,"a"b\n9,"ok ""q"" "\n'
        b'1"0,"multi\nline"\n"11"2,"multi\nline"\n13,a\rb\n14,last'
    )
    rows, rejected = taken(CsvFile(path, block_bytes=block_bytes))
    assert rows == [(1, "a"), (4, "x\ny"), (9, 'ok "q" '), (14, "last")]
    assert told(rejected) == [
        (3, None, "has 1 field; 2 fields are expected"),
        (4, None, "has 3 fields; 2 fields are expected"),
        (5, None, "is empty; 2 fields are expected"),
        (8, "n", "is not utf-8: byte 0xe9"),
        (9, "n", "holds a NUL"),
        (10, "id", "'x7' is not a long"),
        (12, "n", "text follows the closing quote"),
        (14, "id", "'1\"0' is not a long"),
        (16, "id", "text follows the closing quote"),
        (18, "n", "a carriage return stands alone outside quotes"),
    ]
    assert [each.record for each in rejected][3:8] == [
        "5,\\xe9té",
        "6,a\\x00b",
        'x7,"q\nz"',
        '8,"a"b',
        '1"0,"multi\nline"',
    ]
    scanned: list[Rejected] = []
    profile = CsvFile(path, block_bytes=block_bytes).scan(rejects=scanned.append)
    assert (dict(profile.columns), profile.rows, len(scanned)) == ({"id": "string", "n": "string"}, 6, 8)


@pytest.mark.parametrize("end", ['"open\n5,b\n', '"a"b "\n5,b\n', '"a"b "'])
def test_a_quote_that_is_open_where_the_file_ends_is_refused(tmp_path: Path, end: str) -> None:
    path = tmp_path / "in.csv"
    path.write_text(f"id,n\n1,a\n2\n4,{end}", encoding="utf-8")
    with pytest.raises(SourceFileError, match="line 4"):
        taken(CsvFile(path))


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(st.sampled_from('ab",\n\r\0é'), max_size=24),
    block_bytes=st.sampled_from([1, 3, 1 << 20]),
    odd=st.sampled_from([b"", b"\xff", b"\xc3"]),
)
@example(text='a,b\n"a"b,",\n\n', block_bytes=1, odd=b"")
def test_no_line_of_a_csv_file_is_lost_and_a_right_file_is_read_as_ever(
    text: str, block_bytes: int, odd: bytes
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "in.csv")
        path.write_bytes(b"a,b\n" + text.encode() + odd)
        types = {"a": "string", "b": "string"}
        try:
            rows, rejected = taken(CsvFile(path, block_bytes=block_bytes), types)
        except SourceFileError:
            with pytest.raises(SourceFileError):
                CsvFile(path).read(types).read_all()
            return
        assert (rows, rejected) == taken(CsvFile(path), types)
        try:
            right = [tuple(row.values()) for row in CsvFile(path).read(types).read_all().to_pylist()]
        except SourceFileError:
            assert rejected
        else:
            assert (rows, rejected) == (right, [])
        content = text.encode() + odd
        lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
        inside = sum(str(value).count("\n") for row in rows for value in row if value is not None)
        beside = sum(each.record.count("\n") for each in rejected)
        assert len(rows) + len(rejected) + inside + beside == lines


@pytest.mark.parametrize("block_bytes", BLOCKS)
def test_t06_json_lines_that_are_not_right_are_told_and_the_others_read(tmp_path: Path, block_bytes: int) -> None:
    path = tmp_path / "in.ndjson"
    path.write_bytes(
        b'{"id":1}\n{"id":2,"x":1}\n{oops\n[1]\n{"id":"x"}\n{"id":3}{"id":4}\n{"n":"a\\u0000b"}\n{"n":"\\ud83d"}\n'
        b'{"n":"\xe9"}\n{"id":5,"n":"cut\n{"id":6, "id":7}\n{"id":NaN}\n\nTraceback\n{"id":8,"n":"\\ud83d\\ude00"}'
    )
    rows, rejected = taken(JsonFile(path, block_bytes=block_bytes))
    assert rows == [(1, None), (8, "😀")]
    assert told(rejected) == [
        (2, None, "has 'x'; the declared columns are id, n"),
        (3, None, "it is not JSON: Expecting property name enclosed in double quotes"),
        (4, None, "an object is expected, one for each row"),
        (5, "id", "'x' is a text, and no long"),
        (6, None, "a line break is expected between two objects"),
        (7, None, "column 'n' has a NUL character, which no dataset holds"),
        (8, None, "column 'n' has half a surrogate pair, which is not a character"),
        (9, None, "is not utf-8: byte 0xe9"),
        (10, None, "it is not JSON: Unterminated string starting at"),
        (11, None, "the object has the key 'id' more than once"),
        (12, None, "the object has NaN, which JSON has not"),
        (14, None, "it is not JSON: Expecting value"),
    ]
    assert [each.record for each in rejected][5:8] == ['{"n":"a\\u0000b"}', '{"n":"\\ud83d"}', '{"n":"\\xe9"}']


@pytest.mark.parametrize("block_bytes", BLOCKS)
def test_values_of_a_json_array_are_left_out_where_their_end_is_certain(tmp_path: Path, block_bytes: int) -> None:
    path = tmp_path / "in.json"
    path.write_bytes(b'[{"id":1},\n77, {"id":NaN}, {"n":"a\x00b"},\n{"id":3,"id":4},{"id":1.5},\n{"id":9}]')
    rows, rejected = taken(JsonFile(path, block_bytes=block_bytes))
    assert rows == [(1, None), (9, None)]
    assert [(each.line, each.record) for each in rejected] == [
        (2, "77"),
        (2, '{"id":NaN}'),
        (2, '{"n":"a\\x00b"}'),
        (3, '{"id":3,"id":4}'),
        (3, '{"id":1.5}'),
    ]
    path.write_text('[{"id":1}, {oops}, {"id":2}]', encoding="utf-8")
    with pytest.raises(SourceFileError, match="not JSON"):
        taken(JsonFile(path, block_bytes=block_bytes))


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("data", ['{"id":1}\n{"id":2,\n"n":"a"}\n', '{oops,\n"n": [\n{"id": 3}\n]}\n'])
def test_a_part_of_an_object_never_passes_for_a_record(tmp_path: Path, data: str, block_bytes: int) -> None:
    path = tmp_path / "in.ndjson"
    path.write_text(data, encoding="utf-8")
    with pytest.raises(SourceFileError, match="part of an object"):
        taken(JsonFile(path, block_bytes=block_bytes))


def test_t06_rows_of_a_parquet_file_that_do_not_fit_are_told_by_their_number(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": [1, 2, 1 << 40, 4], "n": ["a", "b\0c", "d", None]}), path)
    rows, rejected = taken(ParquetFile(path), {"id": "int", "n": "string"})
    assert rows == [(1, "a"), (4, None)]
    assert [(each.line, each.column, each.record) for each in rejected] == [
        (2, "n", '{"id": 2, "n": "b\\u0000c"}'),
        (3, "id", '{"id": 1099511627776, "n": "d"}'),
    ]
    with pytest.raises(SourceFileError, match="can't be read as"):
        taken(ParquetFile(path), {"id": "date", "n": "string"})


def test_many_rejects_cost_little_and_long_records_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("id,n\n" + "".join(f"{'x' * (i % 2)}{i},a\n{i}\n" for i in range(5000)), encoding="utf-8")
    rows, rejected = taken(CsvFile(path))
    assert (len(rows), len(rejected)) == (2500, 7500)
    assert {each.line for each in rejected if each.column} == {2 * i + 2 for i in range(1, 5000, 2)}
    path.write_text(f"id,n\nx,{'é' * 2 * RECORD_CHARACTERS}\n", encoding="utf-8")
    assert [len(each.record) for each in taken(CsvFile(path))[1]] == [RECORD_CHARACTERS]


def test_utf16_that_breaks_off_is_told(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes("\ufeffid,n\n1,a\n2,b".encode("utf-16-le") + b"\x0a")
    rows, rejected = taken(CsvFile(path, CsvOptions(encoding="utf-16")))
    assert (rows, told(rejected)) == ([(1, "a")], [(3, "n", "is not utf-16: byte 0x0a")])
