"""Rows that a scan keeps are those that a second read of the file would give, or none are kept."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeward.sources.file_set import FileSet
from lakeward.sources.formats.csv import CsvFile
from lakeward.sources.kept_rows import KeptRows

_TEXTS = ("", '""', "0", "7", "-12", "9223372036854775807", "9223372036854775808", "007", "1.5", "1.50", "-0.0", "1e3")
_MORE = (
    "0.1234567891",
    ".5",
    "12345678901234567.25",
    "true",
    "2024-02-29",
    "2024-02-29 10:11",
    "2024-02-29T10:11Z",
    "x",
)
_COLUMN = st.lists(st.sampled_from(_TEXTS + _MORE), min_size=1, max_size=3, unique=True)


@given(st.data(), st.integers(1, 30))
@settings(max_examples=150, deadline=None)
def test_what_is_kept_is_what_the_file_says(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, rows: int
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    kinds = [data.draw(_COLUMN) for _ in range(3)]
    lines = [",".join(data.draw(st.sampled_from(kind)) for kind in kinds) for _ in range(rows)]
    path = folder / "t.csv"
    path.write_text("\n".join(["a,b,c", *lines, ""]))
    with closing(KeptRows(folder)) as kept:
        # Blocks of few rows: the types of most are found to be too narrow by a later one.
        scanned = CsvFile(path, block_bytes=16)
        scanned.kept = kept
        kept.begin(path)
        types = scanned.scan().columns
        assert types == CsvFile(path).scan().columns
        batches = kept.rows_of(path, types)
        read = CsvFile(path).read(types).read_all()
        if batches is not None:
            assert pa.Table.from_batches(batches, read.schema).combine_chunks() == read.combine_chunks()
        else:
            # A text can't be had from a number, and neither can digits that the double before had too few of.
            assert {"string", "decimal"} & {type_.partition("(")[0] for type_ in types.values()}


@pytest.fixture
def several(tmp_path: Path) -> Iterator[FileSet]:
    """Two files, of which the second widens the types of the first."""
    (tmp_path / "a.csv").write_text("id,n,t\n1,5,\n2,,\n")
    (tmp_path / "b.csv").write_text("t,id,n\nx,3,2.25\n")
    files = FileSet([tmp_path / "a.csv", tmp_path / "b.csv"])
    yield files
    files.close()


def test_rows_of_several_files_are_read_once(several: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    types = several.scan(keep_in=tmp_path / "scratch").columns
    assert types == {"id": "long", "n": "decimal(18,2)", "t": "string"}
    plain = FileSet(several.files).read(types).read_all()
    with monkeypatch.context() as patch:
        patch.delattr(CsvFile, "read")
        assert several.read(types).read_all().combine_chunks() == plain.combine_chunks()
    # Other columns than those that were found are looked for in the files, which refuse them.
    assert several.read({"id": "string", "n": "string", "t": "string"}).read_all()["n"].to_pylist() == [
        "5",
        None,
        "2.25",
    ]
    several.close()
    assert several.read(types).read_all().combine_chunks() == plain.combine_chunks()


def test_without_room_the_files_are_read_twice(
    several: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __init__(self, file: IO[bytes]) -> None:
            self._file = file

        def __getattr__(self, name: str) -> object:
            return getattr(self._file, name)

        def write(self, data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    make = KeptRows._open

    def opened(self: KeptRows) -> None:
        make(self)
        assert self._file is not None
        self._file = Full(self._file)  # type: ignore[assignment]

    monkeypatch.setattr(KeptRows, "_open", opened)
    types = several.scan(keep_in=tmp_path / "scratch").columns
    assert several.read(types).read_all().num_rows == 3


def test_no_more_than_a_part_of_the_free_space_is_taken(
    several: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 400})())
    types = several.scan(keep_in=tmp_path / "scratch").columns
    assert several._kept is not None and several._kept.full
    assert several.read(types).read_all().num_rows == 3
