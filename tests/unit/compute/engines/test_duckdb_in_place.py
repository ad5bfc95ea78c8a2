"""Inputs that are read in place: the same rows as streamed, and not a byte beyond what storage says of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeward.compute import duckdb_gate
from lakeward.compute.engine import Input
from lakeward.compute.engines.duckdb import DuckDBEngine
from lakeward.errors import ComputeError, LakewardError, SqlError, StorageError
from lakeward.in_place import InPlace
from lakeward.types.schema import Schema

SCHEMA = Schema.declare({"id": "long", "text": "string"})
ROWS = pa.table({"id": range(100), "text": [f"text {number}" for number in range(100)]})
DELETED = pa.table({"place": pa.array([3, 5], pa.int64())})
LEFT = 98


@dataclass
class Files:
    """A file of rows with a hidden column, two of them deleted, as an input in place."""

    path: Path
    opened: list[list[str]] = field(default_factory=list)

    def write(self) -> None:
        """Write the file."""
        pq.write_table(ROWS.append_column("__row_id", pa.array(range(1000, 1100))), self.path)

    @property
    def input(self) -> Input:
        """The input, whose stream finds the file broken if it is."""
        return Input(SCHEMA, self.open, self.in_place)

    def in_place(self) -> InPlace:
        """Describe the rows that are left."""
        sql = (
            f"SELECT t.id, t.text FROM read_parquet(['{self.path}'], file_row_number = true) AS t "
            "ANTI JOIN gone_4711 AS d ON d.place = t.file_row_number"
        )
        return InPlace(sql, (str(self.path),), {"gone_4711": DELETED})

    def open(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Stream the rows."""
        self.opened.append(list(columns))
        try:
            rows = pq.read_table(self.path, columns=list(columns))
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"{self.path} is broken") from error
        return rows.filter([number not in (3, 5) for number in range(rows.num_rows)]).to_reader()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path / "rows.parquet")
    made.write()
    return made


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    return DuckDBEngine(memory_limit="300MB", threads=2, temp_directory=tmp_path / "scratch")


@pytest.mark.parametrize(
    "sql",
    [
        "from t order by id",
        "select a.id, b.text from t a join t b on a.id = b.id + 1 order by a.id",
        "select count(*) as rows from t",
        "with recursive r as (select 0 as id union all select t.id from r join t on t.id = r.id + 1) from r",
    ],
)
def test_the_rows_are_those_of_the_stream(engine: DuckDBEngine, files: Files, sql: str) -> None:
    placed = engine.run(sql, {"t": files.input}).read_all()
    assert files.opened == []
    assert placed == engine.run(sql, {"t": Input(SCHEMA, files.open)}).read_all()
    assert placed.num_rows in (1, 3, LEFT, 95)


def test_inputs_in_place_and_streams_are_joined(engine: DuckDBEngine, files: Files) -> None:
    streams = {name: Input(SCHEMA, files.open) for name in ("a", "b")}
    sql = "select t.id, a.text as a, b.text as b from t join a using (id) join b using (id) order by id"
    found = engine.run(sql, {"t": files.input, **streams}).read_all()
    assert found.column("id").to_pylist() == [number for number in range(100) if number not in (3, 5)]
    assert found.column("a") == found.column("b")


BY_NAME = {
    "the file": "select * from '{file}'",
    "the file, named as a table": 'select * from "{file}"',
    "under a name of a WITH elsewhere": 'select * from (with "{file}" as (select 1 as x) select x from t), "{file}"',
    "under a name of a later WITH": 'with a as (from "{file}"), "{file}" as (select 1 as x) select * from a, t',
    "under a name of a WITH, in itself": 'with "{file}" as (from "{file}") from "{file}"',
    "under a name of a recursive WITH elsewhere": 'select * from (with recursive "{file}" as (select 1 as x union all '
    'select x + 1 from "{file}" where x < 3) select max(x) as x from "{file}") join "{file}" on true',
    "in a condition": "select id from t where id in (select __row_id from '{file}')",
    "by a function": "select * from read_parquet('{file}')",
    "its metadata": "select * from parquet_metadata('{file}')",
    "its neighbours": "select * from '{folder}/other.parquet'",
    "its folder": "select * from glob('{folder}/*')",
    "what hides the columns": "select * from in0",
    "what hides the columns, named elsewhere": "select * from (with in0 as (select 1 as x) from in0), in0",
    "the deleted rows": "select * from gone_4711",
    "the deleted rows, named elsewhere": "select * from (with gone_4711 as (select 1 as x) from gone_4711), gone_4711",
    "a hidden column": "select __row_id from t",
    "the number of a row": "select file_row_number from t",
    "the name of the file": "select filename from t",
}


@pytest.mark.parametrize("sql", BY_NAME.values(), ids=list(BY_NAME))
def test_s03_nothing_but_the_rows_can_be_named(engine: DuckDBEngine, files: Files, sql: str) -> None:
    (files.path.parent / "other.parquet").write_bytes(files.path.read_bytes())
    with pytest.raises(SqlError):
        engine.run(sql.format(file=files.path, folder=files.path.parent), {"t": files.input})
    assert files.opened == []


@pytest.mark.parametrize("name", ["rows", "other"])
def test_s03_behind_the_gate_a_database_that_can_open_no_file_refuses_files(
    engine: DuckDBEngine, files: Files, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(duckdb_gate, "check", lambda *_: None)
    (files.path.parent / "other.parquet").write_bytes(files.path.read_bytes())
    with pytest.raises(SqlError, match="operations are disabled"):
        engine.run(f"select * from '{files.path.parent / name}.parquet'", {"t": files.input})
    assert files.opened == []


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def scrambled(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4:600] = bytes(596)
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [Path.unlink, truncated, scrambled])
def test_a_broken_file_gives_the_error_of_the_stream(
    engine: DuckDBEngine, files: Files, damage: Callable[[Path], None]
) -> None:
    damage(files.path)
    with pytest.raises(StorageError, match="is broken"):
        engine.run("select sum(id) as sum, max(text) as text from t", {"t": files.input}).read_all()


def test_an_error_of_the_query_is_not_blamed_on_sound_files(engine: DuckDBEngine, files: Files) -> None:
    with pytest.raises(ComputeError, match="Could not convert"):
        engine.run("select cast(text as int) as number from t", {"t": files.input}).read_all()
    assert files.opened == []
    with pytest.raises(ComputeError, match="my own"):
        engine.run("select error('my own ' || text)::int as x from t", {"t": files.input}).read_all()


def test_only_the_files_of_the_query_can_be_opened(engine: DuckDBEngine, files: Files) -> None:
    """What storage says and what the connection allows are two things: a wrong description opens nothing."""
    wrong = InPlace(files.in_place().sql, (), {"gone_4711": DELETED})
    with pytest.raises(LakewardError, match="operations are disabled"):
        engine.run("from t", {"t": Input(SCHEMA, files.open, lambda: wrong)}).read_all()


def test_no_write_reaches_a_file(engine: DuckDBEngine, files: Files) -> None:
    before = files.path.read_bytes()
    connection = engine._connect(None, [str(files.path)])
    with pytest.raises(duckdb.Error, match="disabled"):
        connection.execute(f"COPY (SELECT 1) TO '{files.path}'")
    assert files.path.read_bytes() == before
