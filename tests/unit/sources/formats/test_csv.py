"""CSV in and out: what is read is what is written there, and what can't be is refused by line."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from lakeward.errors import ColumnMismatch, SchemaError, SettingsError, SourceFileError
from lakeward.sources.formats import csv_records
from lakeward.sources.formats.csv import CsvFile, CsvOptions, CsvProfile

BOM = b"\xef\xbb\xbf"


def csv_file(folder: Path, data: bytes, options: CsvOptions | None = None, block_bytes: int = 1 << 20) -> CsvFile:
    path = folder / "in.csv"
    path.write_bytes(data)
    return CsvFile(path, options, block_bytes)


def rows(file: CsvFile, types: dict[str, str] | None = None) -> list[tuple[object, ...]]:
    profile = file.scan()
    table = file.read(types or profile.columns).read_all()
    assert table.num_rows == profile.rows
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []


def refusal(file: CsvFile, types: dict[str, str] | None = None) -> SourceFileError:
    with pytest.raises(SourceFileError) as caught:
        if types is None:
            file.scan()
        else:
            file.read(types).read_all()
    assert str(file.file) in str(caught.value)
    return caught.value


@pytest.fixture(params=[1, 7, 1 << 20], ids=["1-byte blocks", "7-byte blocks", "one block"])
def block_bytes(request: pytest.FixtureRequest) -> int:
    """Every record crosses a block's border in every way."""
    return int(request.param)


# Types from a full scan


def test_f02_a_late_value_of_another_kind_makes_text_and_loses_no_row(tmp_path: Path) -> None:
    file = csv_file(tmp_path, b"v\n" + b"7.25\n" * 30_000 + b"7.2.5\n", block_bytes=4_096)
    profile = file.scan()
    assert profile == CsvProfile({"v": "string"}, rows=30_001, lines=30_002)
    assert file.read(profile.columns).read_all().column("v")[-1].as_py() == "7.2.5"


def test_f02_a_declared_type_refuses_the_late_value_by_line(tmp_path: Path) -> None:
    file = csv_file(tmp_path, b"v\n" + b"7.25\n" * 30_000 + b"7.2.5\n7.3\n", block_bytes=4_096)
    error = refusal(file, {"v": "double"})
    assert (error.fields["line"], error.fields["column"], error.fields["value"]) == (30_002, "v", "7.2.5")


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["1", "1e5"], "double"),
        (["2024-01-01", "text"], "string"),
        (["2024-02-29", ""], "date"),
        (["2023-02-29"], "string"),
        (["0000-01-01"], "string"),
        (["2024-01-01T10:00:00", "2024-01-01 10:00:00.123456"], "timestamp"),
        (["2024-01-01T10:00:00Z", "2024-01-01 10:00:00+05:30"], "timestamptz"),
        (["2024-01-01T10:00:00Z", "2024-01-01 10:00:00"], "string"),
        (["2024-01-01", "2024-01-01 10:00:00"], "string"),
        (["2024-01-01 10:00:00.1234567"], "string"),
        (["true", "false", ""], "boolean"),
        (["true", "1"], "string"),
        (["t", "f"], "string"),
        (["007", "8"], "string"),
        (["-0.5", ".5", "5."], "decimal(18,1)"),
        (["1.10", "123456789012345.678", "7"], "decimal(18,3)"),
        (["1.10", "1234567890123456.789"], "decimal(38,3)"),
        (["0.5", "1.5e3", "7"], "double"),
        (["0.5", "-0.0"], "double"),
        (["0.5", "0.1234567891"], "double"),
        (["1.5", "1" * 38], "string"),
        (["+5"], "string"),
        (["0x1F"], "string"),
        ([" 1"], "string"),
        (["1_000"], "string"),
        (["٣"], "string"),
        (["nan"], "string"),
        (["1e400"], "string"),
        (["1e-400"], "string"),
        (["9223372036854775807", "-9223372036854775808"], "long"),
        (["", ""], "string"),
    ],
)
def test_types_come_from_every_value(tmp_path: Path, block_bytes: int, values: list[str], type_: str) -> None:
    data = "v,n\n" + "".join(f"{value},\n" for value in values)
    assert csv_file(tmp_path, data.encode(), block_bytes=block_bytes).scan().columns == {"v": type_, "n": "string"}


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["9007199254740993", "1"], "long"),
        (["4611686018427387905"], "long"),
        (["12345678901234567890123", "1"], "decimal(38,0)"),
        (["1" * 38, "-" + "9" * 38], "decimal(38,0)"),
        (["1" * 39], "string"),
        (["9007199254740993", "0.5"], "decimal(18,1)"),
        (["0.5", "12345678901234567890123"], "decimal(38,1)"),
        (["1152921504606846976", "0.5"], "decimal(38,1)"),
        (["0.1234567890123456789"], "decimal(38,19)"),
        (["9007199254740993", "1e5"], "string"),
        (["10.357019999999999", "-0.00012345678901234567"], "double"),
    ],
)
def test_t07_no_digit_goes_through_a_double(tmp_path: Path, block_bytes: int, values: list[str], type_: str) -> None:
    file = csv_file(tmp_path, ("v\n" + "".join(f"{value}\n" for value in values)).encode(), block_bytes=block_bytes)
    assert file.scan().columns == {"v": type_}
    if type_ != "double":
        read = [str(value) for (value,) in rows(file)]
        assert read == values or list(map(Decimal, read)) == list(map(Decimal, values))


def test_t07_digits_are_exact_in_declared_types(tmp_path: Path) -> None:
    file = csv_file(tmp_path, b"id,big,m,d\n9007199254740993,12345678901234567890123,1.10,0.1\n")
    types = {"id": "long", "big": "decimal(38,0)", "m": "decimal(10,2)", "d": "double"}
    assert rows(file, types) == [(9007199254740993, Decimal("12345678901234567890123"), Decimal("1.10"), 0.1)]
    assert refusal(file, {**types, "id": "double"}).fields["column"] == "id"


def test_a_refused_value_is_found_behind_quoted_newlines(tmp_path: Path, block_bytes: int) -> None:
    data = b'id,"no\nte",n\r\n1,"a\nb\r\nc",1\r\n2,,2\n3,"x\ny",bad\n4,z,4\n'
    error = refusal(csv_file(tmp_path, data, block_bytes=block_bytes), {"id": "long", "no\nte": "string", "n": "long"})
    assert (error.fields["line"], error.fields["column"], error.fields["value"]) == (8, "n", "bad")


# Records


def test_f04_a_record_that_is_too_long_is_refused(tmp_path: Path, block_bytes: int) -> None:
    error = refusal(csv_file(tmp_path, b"h,i\n10,20\n30,40,50\n", block_bytes=block_bytes))
    assert (error.fields["line"], error.fields["expected"], error.fields["found"]) == (3, 2, 3)


def test_f04_a_record_that_is_too_short_is_refused(tmp_path: Path, block_bytes: int) -> None:
    error = refusal(csv_file(tmp_path, b"h,i\n10,20\n30\n40,50,60\n", block_bytes=block_bytes))
    assert (error.fields["line"], error.fields["found"]) == (3, 1)


def test_f04_quotes_that_come_late_are_read_like_early_ones(tmp_path: Path) -> None:
    data = b"h,i\n" + b"1,2\n" * 3_000 + b'3,"say ""hi"", x"\n'
    profile = csv_file(tmp_path, data, block_bytes=512).scan()
    assert (profile.rows, profile.lines, profile.columns) == (3_001, 3_002, {"h": "long", "i": "string"})
    assert rows(csv_file(tmp_path, data, block_bytes=512))[-1] == (3, 'say "hi", x')


def test_f04_newlines_in_header_and_row_5000(tmp_path: Path, block_bytes: int) -> None:
    count = 5_000 if block_bytes > 7 else 50
    data = b'"a\nx",b\r\n' + b"1,2\n" * count + b'1,"p\n\nq"\r\n1,3'
    file = csv_file(tmp_path, data, block_bytes=block_bytes)
    profile = file.scan()
    assert (profile.rows, profile.lines) == (count + 2, count + 6)
    assert rows(file)[-2:] == [(1, "p\n\nq"), (1, "3")]


def test_lines_are_rows_and_header(tmp_path: Path) -> None:
    profile = csv_file(tmp_path, b"a,b\n" + b"1,2\n" * 999 + b"1,2").scan()
    # The last line has no end; as a record it counts like any other.
    assert profile.lines == profile.rows + 1 == 1_001


def test_an_empty_line_is_ragged_and_in_one_column_null(tmp_path: Path, block_bytes: int) -> None:
    error = refusal(csv_file(tmp_path, b"a,b\n1,2\n\n3,4\n", block_bytes=block_bytes))
    assert error.fields["line"] == 3
    assert refusal(csv_file(tmp_path, b"a,b\r\n1,2\r\n\r\n", block_bytes=block_bytes)).fields["line"] == 3
    assert rows(csv_file(tmp_path, b'a\n\n""\nx\n', block_bytes=block_bytes)) == [(None,), ("",), ("x",)]


def test_an_open_quote_is_refused_where_it_opens(tmp_path: Path, block_bytes: int) -> None:
    error = refusal(csv_file(tmp_path, b'a,b\n1,2\n3,"x\n4,5\n', block_bytes=block_bytes))
    assert (error.fields["line"], error.fields["column"]) == (3, "b")


def test_an_open_quote_does_not_pull_the_file_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "MAX_RECORD_BYTES", 1 << 20)
    error = refusal(csv_file(tmp_path, b'a,b\n1,2\n3,"x\n' + b"4,5\n" * (1 << 20), block_bytes=4_096))
    assert error.fields["line"] == 3


def test_text_behind_a_closing_quote_is_refused(tmp_path: Path, block_bytes: int) -> None:
    for text in (b'"x"y', b'"x" ', b'"x""'):
        error = refusal(csv_file(tmp_path, b"a,b\n1,2\n3," + text + b"\n5,6\n", block_bytes=block_bytes))
        assert (error.fields["line"], error.fields["column"]) == (3, "b")


def test_a_quote_inside_an_unquoted_field_is_text(tmp_path: Path, block_bytes: int) -> None:
    data = b'a,b\n5" pipe,"x, ""y"" \n z"\n6"",7""8\n'
    file = csv_file(tmp_path, data, block_bytes=block_bytes)
    assert rows(file) == [('5" pipe', 'x, "y" \n z'), ('6""', '7""8')]
    assert file.scan().lines == 4


def test_a_carriage_return_alone_is_refused_outside_quotes_only(tmp_path: Path, block_bytes: int) -> None:
    assert rows(csv_file(tmp_path, b'a,b\r\n1,"x\ry\r\nz"\n', block_bytes=block_bytes)) == [(1, "x\ry\r\nz")]
    assert refusal(csv_file(tmp_path, b"a,b\n1,2\n1,x\ry\n", block_bytes=block_bytes)).fields["line"] == 3
    assert refusal(csv_file(tmp_path, b"a,b\r1,2\r", block_bytes=block_bytes)).fields["line"] == 1


def test_a_very_long_field(tmp_path: Path) -> None:
    long = b"x,\n" * 3_000_000
    file = csv_file(tmp_path, b'a,b\n1,"' + long + b'"\n2,y', block_bytes=4_096)
    assert file.scan().columns == {"a": "long", "b": "string"}
    assert rows(file) == [(1, long.decode()), (2, "y")]


# Nulls


def test_f05_quoted_empty_is_text_and_bare_empty_is_null(tmp_path: Path, block_bytes: int) -> None:
    data = b'id,n\n1,""\n2,\n3,x\n4,NULL\n5,\\N\n'
    assert rows(csv_file(tmp_path, data, block_bytes=block_bytes)) == [
        (1, ""),
        (2, None),
        (3, "x"),
        (4, "NULL"),
        (5, "\\N"),
    ]


def test_f05_declared_markers_are_null_where_they_are_not_quoted(tmp_path: Path) -> None:
    data = b'id,n\n1,NULL\n2,"NULL"\n3,\\N\n4,null\nNULL,\n'
    options = CsvOptions(null_markers=("NULL", "\\N"))
    assert rows(csv_file(tmp_path, data, options)) == [
        (1, None),
        (2, "NULL"),
        (3, None),
        (4, "null"),
        (None, None),
    ]


# Headers


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ("kg,kg,KG,kg_1", ["'kg' (column 1)", "'kg' (column 2)", "'KG' (column 3)"]),
        ("Net,net", ["'Net' (column 1)", "'net' (column 2)"]),
        ("x,\u00e9,e\u0301", ["'\u00e9' (column 2)", "'e\u0301' (column 3)"]),
    ],
)
def test_n02_equal_headers_are_refused_listing_all(tmp_path: Path, header: str, named: list[str]) -> None:
    error = refusal(csv_file(tmp_path, f"{header}\n".encode()))
    assert error.fields["columns"] == named
    assert all(name in str(error) for name in named)


def test_n02_headers_that_only_look_alike_as_slugs_stay_apart(tmp_path: Path) -> None:
    columns = csv_file(tmp_path, b"pr!ce,pr%ce,Net Kg,net_kg,%,()\n1,2,3,4,5,6\n").scan().columns
    assert list(columns) == ["pr!ce", "pr%ce", "Net Kg", "net_kg", "%", "()"]


def test_an_empty_header_name_is_refused_with_its_place(tmp_path: Path) -> None:
    assert refusal(csv_file(tmp_path, b'a,,b," "\n')).fields["columns"] == [2, 4]


def test_an_empty_file_is_refused_and_a_header_alone_is_not(tmp_path: Path, block_bytes: int) -> None:
    for data in (b"", BOM):
        assert "is empty" in str(refusal(csv_file(tmp_path, data)))
    for data in (b"a,b\n", b"a,b", b"a,b\r\n"):
        file = csv_file(tmp_path, data, block_bytes=block_bytes)
        assert file.scan() == CsvProfile({"a": "string", "b": "string"}, rows=0, lines=1)
        assert file.read({"a": "long", "b": "date"}).read_all().num_rows == 0


def test_without_header_the_columns_are_numbered(tmp_path: Path, block_bytes: int) -> None:
    file = csv_file(tmp_path, b'1;"x;y"\n2;z', CsvOptions(header=False, delimiter=";"), block_bytes)
    assert file.scan() == CsvProfile({"column1": "long", "column2": "string"}, rows=2, lines=2)
    assert rows(file) == [(1, "x;y"), (2, "z")]


# The file as a whole


def test_columns_come_in_the_order_of_the_types(tmp_path: Path) -> None:
    file = csv_file(tmp_path, b"a,b\n1,x\n")
    assert file.read({"b": "string", "a": "long"}).read_all().to_pylist() == [{"b": "x", "a": 1}]
    with pytest.raises(ColumnMismatch) as caught:
        file.read({"a": "long", "c": "long"})
    assert (caught.value.fields["missing"], caught.value.fields["unexpected"]) == (["c"], ["b"])
    with pytest.raises(SchemaError):
        file.read({"a": "long", "b": "list<long>"})


def test_a_file_that_changes_behind_the_scan_is_refused(tmp_path: Path) -> None:
    file = csv_file(tmp_path, b"a\n1\n")
    types = file.scan().columns
    Path(str(file.file)).write_bytes(b"a\n1\n2\n")
    with pytest.raises(SourceFileError, match="changed since"):
        file.read(types)


@pytest.mark.parametrize("wrong", [{"delimiter": ""}, {"delimiter": "§"}, {"quote": ","}, {"encoding": "cp1252"}])
def test_options_that_cannot_be_meant_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(SettingsError):
        CsvOptions(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("delimiter", "shown"), [(";", ";"), ("\t", "\\t"), ("|", "|")], ids=["semicolon", "tab", "bar"]
)
def test_a_header_with_another_delimiter_names_the_option(tmp_path: Path, delimiter: str, shown: str) -> None:
    data = f"id{delimiter}n\n1{delimiter}a,b\n".encode()
    error = refusal(csv_file(tmp_path, data))
    assert f"--delimiter '{shown}'" in str(error.next_step) and error.fields["delimiter"] == delimiter
    assert rows(csv_file(tmp_path, data, CsvOptions(delimiter=delimiter))) == [(1, "a,b")]
    one = data.replace(b",b", b"")
    assert rows(csv_file(tmp_path, one, CsvOptions(delimiter=","))) == [(f"1{delimiter}a",)]
    assert rows(csv_file(tmp_path, b"note;\na;b\n")) == [("a;b",)]
    assert rows(csv_file(tmp_path, b'"a;b"\n1\n')) == [(1,)]
