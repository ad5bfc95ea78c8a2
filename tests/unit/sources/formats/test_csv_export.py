"""What is exported reads back equal, whatever the text, the dialect and the type."""

from __future__ import annotations

import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeward.errors import SchemaError, ValueRefused
from lakeward.sources.formats.csv import CsvFile, CsvOptions, write_csv
from lakeward.types.logical import parse_type
from lakeward.types.table import arrow_type

# Everything that has a meaning in CSV, and a few that only look so.
odd_text = st.text(st.sampled_from("ab\",;'\t\r\n \ufeff\\N0é😀\u2028"), max_size=6) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8
)
dialects = st.builds(
    CsvOptions,
    delimiter=st.sampled_from(",;\t| a"),
    quote=st.sampled_from("\"'"),
    header=st.booleans(),
    null_markers=st.sampled_from([(), ("NA",), ("a", "\\N", "0")]),
    encoding=st.sampled_from(["utf-8", "utf-16"]),
)


@settings(deadline=None, max_examples=300)
@given(data=st.data(), options=dialects, block_bytes=st.sampled_from([1, 5, 64, 1 << 20]))
def test_f05_any_text_comes_back_equal(data: st.DataObject, options: CsvOptions, block_bytes: int) -> None:
    width = data.draw(st.integers(1, 3))
    # A file without header and rows is empty, and says nothing of its columns.
    rows = data.draw(
        st.lists(st.tuples(*[st.none() | odd_text] * width), min_size=0 if options.header else 1, max_size=6)
    )
    names = [data.draw(odd_text) + f"_{position}" for position in range(width)] if options.header else None
    names = names or [f"column{position}" for position in range(1, width + 1)]
    table = pa.table([pa.array(column, pa.string()) for column in zip(*rows, strict=True)] or [[]] * width, names)
    table = table.cast(pa.schema([(name, pa.string()) for name in names]))
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        assert write_csv(table.to_reader(), path, options) == len(rows)
        file = CsvFile(path, options, block_bytes)
        assert file.scan().rows == len(rows)
        assert file.read(dict.fromkeys(names, "string")).read_all().equals(table)


VALUES = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "decimal(38,30)": st.decimals(-99_999_999, 99_999_999, places=30),
    "decimal(20,0)": st.decimals(-(10**20) + 1, 10**20 - 1, places=0),
    "binary": st.binary(max_size=4),
    "date": st.dates(),
    "time": st.times(),
    "timestamp": st.datetimes(),
    "timestamptz": st.datetimes(timezones=st.just(datetime.UTC)),
    "uuid": st.uuids().map(lambda value: value.bytes),
}


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_every_type_comes_back_equal(data: st.DataObject) -> None:
    table = pa.table(
        {
            name: pa.array(
                data.draw(st.lists(st.none() | values, min_size=3, max_size=3)), arrow_type(parse_type(name))
            )
            for name, values in VALUES.items()
        }
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        write_csv(table.to_reader(), path)
        back = CsvFile(path).read({name: name for name in VALUES}).read_all()
    assert back.to_pylist() == table.to_pylist()


def test_nan_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_csv(pa.table({"d": [float("nan"), -0.0, 1.0]}).to_reader(), path)
    assert path.read_text() == "d\nnan\n-0.0\n1.0\n"
    nan, zero, _ = CsvFile(path).read({"d": "double"}).read_all().column("d").to_pylist()
    assert nan != nan and str(zero) == "-0.0"


def test_f05_an_export_reads_back_equal(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, None], "n": ["", None, 'a,"\r\n']})
    path = tmp_path / "out.csv"
    assert write_csv(table.to_reader(), path) == 3
    assert path.read_bytes() == b'id,n\n1,""\n2,\n,"a,""\r\n"\n'
    assert CsvFile(path).read({"id": "long", "n": "string"}).read_all() == table


def test_an_export_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("before")

    def batches() -> object:
        yield pa.record_batch({"n": ["a", "b"]})
        yield pa.record_batch({"n": ["c", "d\0"]})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.string()}), batches())
    with pytest.raises(ValueRefused) as caught:
        write_csv(reader, path)
    assert (caught.value.fields["column"], caught.value.fields["row"]) == ("n", 4)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.csv"]


def test_an_export_refuses_what_the_encoding_lacks(tmp_path: Path) -> None:
    table = pa.table({"n": ["é", "€"]})
    with pytest.raises(ValueRefused) as caught:
        write_csv(table.to_reader(), tmp_path / "out.csv", CsvOptions(encoding="latin-1"))
    assert caught.value.fields["row"] == 2
    with pytest.raises(SchemaError):
        write_csv(pa.table({"n": [[1]]}).to_reader(), tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
