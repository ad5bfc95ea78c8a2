"""Files of stores as DuckDB reads them: shared by its threads, opened once, and failing in words of ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from lakeward.errors import CatalogError, StorageError
from lakeward.storage import remote_files
from lakeward.storage.duck import Duck
from lakeward.storage.remote_files import REMOTE_FILES, RemoteFiles, Source, remote_path
from lakeward.storage.settings import StorageSettings

ROWS = 300_000


@contextmanager
def told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CatalogError(f"dataset a.b.c: the store failed: {type(error).__name__}", safe="all of it") from None


class Store:
    """A store that counts what is opened."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, location: str) -> pa.NativeFile:
        self.opened.append(location)
        return fs.LocalFileSystem().open_input_file(location)

    def source(self) -> Source:
        return Source(self, self.open, told)


@pytest.fixture
def duck(tmp_path: Path) -> Iterator[Duck]:
    opened = Duck(StorageSettings(tmp_path / "warehouse", tmp_path / "scratch", memory_limit="100MB"))
    yield opened
    opened.close()


def test_duckdb_reads_a_file_with_several_threads(duck: Duck, tmp_path: Path) -> None:
    path = tmp_path / "it's [1] 100%*?.parquet"
    pq.write_table(pa.table({"id": range(ROWS), "text": [f"row {number}" for number in range(ROWS)]}), path, 10_000)
    store = Store()
    REMOTE_FILES.offer("several", store.source())
    with duck.connect() as connection:
        connection.execute("SET threads = 4")
        scan = f"read_parquet('{remote_path('several', str(path))}', file_row_number = true)"
        for _ in range(3):
            found = connection.execute(f"SELECT count(*), sum(id), sum(file_row_number), max(text) FROM {scan}")
            assert found.fetchall() == [(ROWS, sum(range(ROWS)), sum(range(ROWS)), "row 99999")]
    assert store.opened == [str(path)]


def test_a_failure_comes_out_as_it_was_named(duck: Duck, tmp_path: Path) -> None:
    REMOTE_FILES.offer("failing", Store().source())
    missing = f"SELECT * FROM read_parquet('{remote_path('failing', str(tmp_path / 'gone.parquet'))}')"
    with (
        pytest.raises(CatalogError, match=r"a\.b\.c: the store failed: FileNotFoundError"),
        duck.session() as connection,
    ):
        connection.execute(missing)
    with pytest.raises(CatalogError, match="FileNotFoundError"):
        duck.stream(missing, pa.schema([("id", pa.int64())])).read_all()


def test_a_file_that_breaks_in_the_middle_fails_the_stream(duck: Duck, tmp_path: Path) -> None:
    path = tmp_path / "breaks.parquet"
    pq.write_table(pa.table({"id": range(ROWS)}), path, 1_000)

    class Breaking(Store):
        def open(self, location: str) -> pa.NativeFile:
            return pa.PythonFile(_Breaking(path), mode="r")

    REMOTE_FILES.offer("breaking", Breaking().source())
    stream = duck.stream(
        f"SELECT * FROM read_parquet('{remote_path('breaking', str(path))}')", pa.schema([("id", pa.int64())])
    )
    with pytest.raises(CatalogError, match="the store failed: OSError"):
        stream.read_all()


class _Breaking:
    """A file whose first half can't be read."""

    closed = False

    def __init__(self, path: Path) -> None:
        self._bytes, self._at = path.read_bytes(), 0

    def seek(self, position: int, whence: int = 0) -> int:
        self._at = (0, self._at, len(self._bytes))[whence] + position
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, count: int = -1) -> bytes:
        if self._at < len(self._bytes) // 2:
            raise OSError("broken")
        start, self._at = self._at, self._at + count
        return self._bytes[start : start + count]

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        pass


def test_fresher_keys_open_anew_and_the_oldest_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_files, "OPEN_FILES", 2)
    paths = [str(tmp_path / f"{number}") for number in range(3)]
    for path in paths:
        Path(path).write_bytes(path.encode())
    files, old, new = RemoteFiles(), Store(), Store()
    files.offer("t", old.source())
    for path in (*paths, paths[2], paths[0]):
        assert files.open(remote_path("t", path)).read() == path.encode()
    assert old.opened == [*paths, paths[0]]
    files.offer("t", new.source())
    files.open(remote_path("t", paths[0]))
    assert new.opened == [paths[0]] and len(old.opened) == 4
    with pytest.raises(StorageError, match="no table of this process"):
        files.open(remote_path("another", paths[0]))


def test_each_thread_reads_from_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(range(100)))
    files = RemoteFiles()
    files.offer("t", Store().source())
    file = files.open(remote_path("t", str(path)))
    assert (file.seek(-10, 2), file.read(3), file.tell(), file.size) == (90, bytes([90, 91, 92]), 93, 100)
    read: list[bytes] = []
    other = threading.Thread(target=lambda: read.append(file.read(2)))
    other.start()
    other.join()
    assert read == [bytes([0, 1])] and file.read() == bytes(range(93, 100)) and file.read(5) == b""
