"""Arrow files and streams: types from their schema, values exact, and a stream that was cut off is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakeward.errors import SourceFileError
from lakeward.sources.formats.arrow import ArrowFile

TABLE = pa.table(
    {
        "id": pa.array([9007199254740993, None, 3]),
        "kind": pa.array(["a", None, "a"]).dictionary_encode(),
        "at": pa.array([1_000, None, 2_000], pa.timestamp("ns", "UTC")),
        "tags": pa.array([["x"], [], None]),
    }
)


def arrow_file(folder: Path, table: pa.Table, kind: str, codec: str | None = None) -> ArrowFile:
    path = folder / "in.arrow"
    new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with new(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, max_chunksize=2)
    return ArrowFile(path)


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_both_forms_come_in_equal(tmp_path: Path, kind: str, codec: str | None) -> None:
    file = arrow_file(tmp_path, TABLE, kind, codec)
    profile = file.scan()
    assert (dict(profile.columns), profile.rows) == (
        {"id": "long", "kind": "string", "at": "timestamptz", "tags": "list<string>"},
        3,
    )
    read = file.read(profile.columns).read_all()
    assert [read[name].to_pylist() for name in ("id", "kind", "tags")] == [
        TABLE[name].to_pylist() for name in ("id", "kind", "tags")
    ]
    assert read["at"].cast(pa.int64()).to_pylist() == [1, None, 2]
    assert arrow_file(tmp_path, TABLE.slice(0, 0), kind, codec).scan().rows == 0


def test_a_value_that_does_not_fit_is_named_by_row(tmp_path: Path) -> None:
    file = arrow_file(tmp_path, pa.table({"t": pa.array([0, 1_000, 1_001], pa.timestamp("ns"))}), "stream")
    with pytest.raises(SourceFileError) as caught:
        file.read({"t": "timestamp"}).read_all()
    assert (caught.value.fields["row"], caught.value.fields["column"]) == (3, "t")


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_no_cut_is_taken_for_the_end(tmp_path: Path, kind: str) -> None:
    # The last values look like the end of a stream.
    table = pa.table({"n": pa.array([1, 2, -1, 0], pa.int32())})
    file = arrow_file(tmp_path, table, kind)
    whole = Path(str(file.file)).read_bytes()
    assert file.read({"n": "int"}).read_all() == table
    for length in range(0, len(whole), 4):
        Path(str(file.file)).write_bytes(whole[:length])
        with pytest.raises(SourceFileError):
            file.scan()
    Path(str(file.file)).write_bytes(whole + b"more")
    with pytest.raises(SourceFileError):
        file.scan()


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "in.feather"
    with pytest.raises(SourceFileError, match="can't be read"):
        ArrowFile(path).scan()
    for data, part in [(b"id,name\n1,x\n", "neither an Arrow file"), (b"FEA1" + b"\0" * 40, "Feather version 1")]:
        path.write_bytes(data)
        with pytest.raises(SourceFileError, match=part):
            ArrowFile(path).scan()
