"""Parquet in and out: types from the file's schema, values exact, damage refused by name."""

from __future__ import annotations

import datetime
import decimal
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeward.errors import ColumnMismatch, SchemaError, SourceFileError
from lakeward.sources.formats.parquet import ParquetFile, write_parquet

UTC = datetime.UTC


def parquet_file(folder: Path, table: pa.Table, **options: object) -> ParquetFile:
    path = folder / "in.parquet"
    pq.write_table(table, path, **options)
    return ParquetFile(path)


def every_type() -> pa.Table:
    return pa.table(
        {
            "boolean": pa.array([True, None]),
            "int": pa.array([-(2**31), None], pa.int32()),
            "long": pa.array([9007199254740993, None], pa.int64()),
            "float": pa.array([0.5, None], pa.float32()),
            "double": pa.array([float("inf"), None]),
            "decimal(18,4)": pa.array([decimal.Decimal("1.1000"), None], pa.decimal128(18, 4)),
            "string": pa.array(["\ufeffä😀", None]),
            "binary": pa.array([b"\0\xff", None]),
            "uuid": pa.array([uuid.UUID(int=7).bytes, None], pa.uuid()),
            "date": pa.array([datetime.date(1, 1, 1), None]),
            "time": pa.array([datetime.time(23, 59, 59, 999999), None], pa.time64("us")),
            "timestamp": pa.array([datetime.datetime(9999, 12, 31, 1), None], pa.timestamp("us")),
            "timestamptz": pa.array([datetime.datetime(1, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "list<long>": pa.array([[1, None], None], pa.list_(pa.int64())),
            "struct<a: string>": pa.array([{"a": "x"}, None], pa.struct({"a": pa.string()})),
        }
    )


def test_every_type_is_known_and_comes_back_equal(tmp_path: Path) -> None:
    table = every_type()
    path = tmp_path / "out.parquet"
    assert write_parquet(table.to_reader(), path) == 2
    file = ParquetFile(path)
    profile = file.scan()
    assert dict(profile.columns) == {name: name for name in table.column_names}
    assert profile.rows == 2
    assert file.read(profile.columns).read_all().to_pylist() == table.to_pylist()


def test_other_arrow_types_become_the_narrowest_that_holds_them(tmp_path: Path) -> None:
    table = pa.table(
        {
            "u8": pa.array([255], pa.uint8()),
            "u32": pa.array([2**32 - 1], pa.uint32()),
            "u64": pa.array([2**64 - 1], pa.uint64()),
            "dictionary": pa.array(["x"]).dictionary_encode(),
            "large": pa.array(["x"], pa.large_string()),
            "ns": pa.array([1_000], pa.timestamp("ns")),
            "zoned": pa.array([1], pa.timestamp("ms", "Europe/Berlin")),
            "fixed": pa.array([b"abcd"], pa.binary(4)),
            "nothing": pa.nulls(1),
        }
    )
    file = parquet_file(tmp_path, table)
    types = file.scan().columns
    assert list(types.values()) == [
        "int",
        "long",
        "decimal(20,0)",
        "string",
        "string",
        "timestamp",
        "timestamptz",
        "binary",
        "string",
    ]
    row = file.read(types).read_all().to_pylist()[0]
    assert row["u64"] == 2**64 - 1
    assert row["ns"] == datetime.datetime(1970, 1, 1, 0, 0, 0, 1)
    assert row["zoned"] == datetime.datetime(1970, 1, 1, 0, 0, 0, 1_000, tzinfo=UTC)


def test_a_value_that_does_not_fit_is_named_by_row(tmp_path: Path) -> None:
    values = [1_000] * 70_000 + [1_001] + [2_000] * 10
    file = parquet_file(tmp_path, pa.table({"t": pa.array(values, pa.timestamp("ns"))}))
    with pytest.raises(SourceFileError) as caught:
        file.read({"t": "timestamp"}).read_all()
    assert (caught.value.fields["row"], caught.value.fields["column"]) == (70_001, "t")
    with pytest.raises(SourceFileError, match="row 1, column 't'"):
        parquet_file(tmp_path, pa.table({"t": [2**40]})).read({"t": "int"}).read_all()


def test_t07_a_long_is_not_read_as_an_inexact_double(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, pa.table({"n": [1, 9007199254740993]}))
    with pytest.raises(SourceFileError, match="row 2"):
        file.read({"n": "double"}).read_all()
    assert file.read({"n": "decimal(38,0)"}).read_all().to_pylist()[1] == {"n": decimal.Decimal(9007199254740993)}


def test_a_column_of_another_kind_is_refused(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, pa.table({"n": ["1"], "m": [1]}))
    with pytest.raises(SourceFileError, match="column 'n'"):
        file.read({"n": "long", "m": "long"}).read_all()
    with pytest.raises(ColumnMismatch) as caught:
        file.read({"n": "string", "x": "long"})
    assert (caught.value.fields["missing"], caught.value.fields["unexpected"]) == (["x"], ["m"])


@pytest.mark.parametrize("keep", [0, 3, 100, -9, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, keep: int) -> None:
    file = parquet_file(tmp_path, every_type())
    Path(str(file.file)).write_bytes(Path(str(file.file)).read_bytes()[:keep])
    with pytest.raises(SourceFileError, match="not a Parquet file"):
        file.scan()


def test_a_renamed_or_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pytest.raises(SourceFileError, match="can't be read"):
        ParquetFile(path).scan()
    path.write_text("id,name\n1,x\n")
    with pytest.raises(SourceFileError, match="not a Parquet file"):
        ParquetFile(path).read({"id": "long", "name": "string"})


def test_damage_inside_is_refused_and_never_read_as_data(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(pa.table({"n": pa.array(range(100_000))}).to_reader(max_chunksize=10_000), path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    file = ParquetFile(path)
    assert file.scan().rows == 100_000
    with pytest.raises(SourceFileError, match="is damaged behind row"):
        file.read({"n": "long"}).read_all()


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    wrong = pa.array([b"ok", b"caf\xe9"]).view(pa.string())
    with pytest.raises(SourceFileError):
        parquet_file(tmp_path, pa.table({"n": wrong})).read({"n": "string"}).read_all()


def test_n02_columns_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceFileError, match=r"'kg' \(column 1\), 'KG' \(column 2\)"):
        parquet_file(tmp_path, pa.table({"kg": [1], "KG": [2]})).scan()


def test_a_type_that_no_dataset_has_is_refused(tmp_path: Path) -> None:
    table = pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))})
    with pytest.raises(SourceFileError, match="column 'm'"):
        parquet_file(tmp_path, table).scan()
    with pytest.raises(SchemaError, match="column 'm'"):
        write_parquet(table.to_reader(), tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
