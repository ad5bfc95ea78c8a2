"""Builds of pipelines: TPC-H on both arms against DuckDB over the same files, a delta, and a join that spills."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Peak, in_fresh_process, table
from rows import ARROW, BATCH_ROWS, COLUMNS, STATUSES, batch

import lakeward

QUERIES = Path(__file__).parents[1] / "tests" / "tpch" / "queries"
SCALES = {"iceberg": 1.0, "postgres": 0.1}
"""Postgres is read by one connection at its own speed, whatever the scale: a tenth tells its ratio as well."""
TURNS = 3
TPCH_LIMIT = 1.5

DELTA_ROWS, SHARE = 5_000_000, 100
DELTA_LIMIT = 0.05

LEFT_ROWS, RIGHT_ROWS = 10_000_000, 1_000_000
LEFT_BYTES, RIGHT_BYTES, MORE = 150, 1_500, ("c1", "c2", "c3", "c4")
"""Of a text in each row: either side is more than the memory limit, so that it spills whichever one DuckDB keeps."""
MEMORY_LIMIT, PEAK_LIMIT_MB = "1GB", 1_600

Row = dict[str, object]


# TPC-H ---------------------------------------------------------------------------------------------------------------


def tpch(arm: str, scale: float) -> dict[str, list[Row]]:
    """Load all tables onto one arm; build each query and run it in DuckDB, in turn; return a total and each query."""
    with _scratch() as scratch:
        _generate(scratch / "files", scale)
        files = sorted((scratch / "files").glob("*.parquet"))
        plain = duckdb.connect(config={"temp_directory": str(scratch)})
        for file in files:
            plain.execute(f"CREATE VIEW {file.stem} AS FROM '{file}'")
        queries = {file.stem: file.read_text(encoding="utf-8") for file in sorted(QUERIES.glob("*.sql"))}
        project = _project(scratch, {name: _tpch_pipeline(name, sql, arm) for name, sql in queries.items()})
        with lakeward.open(scratch / "home") as workspace:
            loaded = time.perf_counter()
            for file in files:
                source = pq.ParquetFile(file)
                columns = lakeward_columns(source.schema_arrow)
                dataset = workspace.create_dataset(f"bench.tpch.{file.stem}", columns, arm=arm)
                dataset.write(pa.RecordBatchReader.from_batches(source.schema_arrow, source.iter_batches(BATCH_ROWS)))
            loaded = time.perf_counter() - loaded
            workspace.apply(project)
            each = [_query(workspace, plain, name, sql) for name, sql in queries.items()]
            whole = {jobs: _whole(workspace, plain, list(queries.values()), jobs) for jobs in (1, 2)}
    reference, ours = (sum(float(str(row[name])) for row in each) for name in ("DuckDB s", "build s"))
    limit = TPCH_LIMIT if arm == "iceberg" else "–"
    base: Row = {"arm": arm, "scale": scale, "load s": loaded}
    total: list[Row] = [
        {**base, "built": "one by one", "DuckDB s": reference, "builds s": ours, "ratio": ours / reference},
        *(
            {**base, "built": f"by one build, {jobs} at a time", "DuckDB s": plain_s, "builds s": ours_s,
             "ratio": ours_s / plain_s}
            for jobs, (plain_s, ours_s) in whole.items()
        ),
    ]  # fmt: skip
    return {"total": [{**row, "limit": limit} for row in total], "each": each}


def _whole(
    workspace: lakeward.Workspace, plain: duckdb.DuckDBPyConnection, queries: list[str], jobs: int
) -> tuple[float, float]:
    """Run all queries one after the other, and build all pipelines by one call, in turn; return the shortest times."""
    references, builds = [], []
    for _ in range(TURNS):
        references.append(_seconds(lambda: [plain.execute(sql).fetchall() for sql in queries]))
        builds.append(_seconds(lambda: workspace.build(full=True, jobs=jobs)))
    return min(references), min(builds)


def lakeward_columns(schema: pa.Schema) -> dict[str, str]:
    """Return the columns of a dataset for a TPC-H table's Parquet file."""
    names = {"int64": "long", "int32": "int", "date32[day]": "date", "decimal128(15, 2)": "decimal(15,2)"}
    return {field.name: names.get(str(field.type), "string") for field in schema}


def _query(workspace: lakeward.Workspace, plain: duckdb.DuckDBPyConnection, name: str, sql: str) -> Row:
    """Run one query both ways in turn, and return the shortest time of each."""
    references, builds, expected = [], [], 0
    for _ in range(TURNS):
        started = time.perf_counter()
        expected = len(plain.execute(sql).fetchall())
        references.append(time.perf_counter() - started)
        started = time.perf_counter()
        workspace.build(name, full=True)
        builds.append(time.perf_counter() - started)
    found = workspace.dataset(f"bench.tpch.{name}").row_count
    assert found == expected, f"{name}: {found} rows instead of {expected}"
    return {"query": name, "DuckDB s": min(references), "build s": min(builds), "ratio": min(builds) / min(references)}


def _generate(folder: Path, scale: float) -> None:
    command = [str(Path(sys.executable).parent / "tpchgen-cli"), "parquet", "-q", "-s", str(scale), "-o", str(folder)]
    subprocess.run(command, check=True)


def _tpch_pipeline(name: str, sql: str, arm: str) -> str:
    tables = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
    sources = ", ".join(f"{each}: bench.tpch.{each}" for each in tables if re.search(rf"\b{each}\b", sql))
    header = [f"pipeline: {name}", f"sources: {{{sources}}}", f"output: bench.tpch.{name}", "strategy: replace"]
    return "".join(f"-- {line}\n" for line in [*header, f"arm: {arm}", "allow_empty: true"]) + sql


# A delta -------------------------------------------------------------------------------------------------------------

DELTA = """
pipeline: {name}
nodes:
  rows: {{source: bench.main.rows}}
  kept:
    transform: |
      select id, customer_id, amount * 2 as amount, upper(note) as note, status, quantity from rows where price > 1
outputs:
  - dataset: bench.main.{name}
    from: kept
    arm: {arm}
    strategy: {strategy}
    primary_key: [id]
    expectations: [{expectations}]
"""
EXPECTATIONS = ", ".join(
    [
        "row_count: {min: 1}",
        "primary_key",
        "not_null: [id, customer_id]",
        'row: {check: "abs(amount) < 1000000"}',
        f"accepted_values: {{column: status, values: [{', '.join(STATUSES)}]}}",
        'value: {sql: "sum(quantity)", within_of_previous: 0.5}',
    ]
)


def delta(arm: str, strategy: str, expectations: str = "") -> Row:
    """Build all rows, add 1 % and build the delta a few times, and build all rows anew, from and to one arm."""
    part = DELTA_ROWS // SHARE
    with _scratch() as scratch:
        text, again = (
            DELTA.format(name=name, arm=arm, strategy=strategy, expectations=expectations) for name in ("delta", "anew")
        )
        project = _project(scratch, {"delta.yml": text, "anew.yml": again})
        with lakeward.open(scratch / "home") as workspace:
            rows = workspace.create_dataset("bench.main.rows", COLUMNS, ["id"], arm=arm)
            rows.write(_stream(0, DELTA_ROWS))
            workspace.apply(project)
            first = _seconds(lambda: workspace.build("delta"))
            deltas = []
            for turn in range(TURNS):
                rows.write(_stream(DELTA_ROWS + turn * part, part))
                deltas.append(_seconds(lambda: workspace.build("delta")))
            new, full = min(deltas), _seconds(lambda: workspace.build("anew"))
            delta_built, built_anew = (workspace.dataset(f"bench.main.{name}") for name in ("delta", "anew"))
            assert delta_built.version == 1 + TURNS
            assert delta_built.digest() == built_anew.digest(), "the delta gave other rows than a full build"
    ratio = new / full
    shown: Row = {"arm": arm, "strategy": strategy, "rows": f"{DELTA_ROWS:,}", "first build s": first}
    share = {"of a full one": f"{ratio:.1%}", "limit": f"{DELTA_LIMIT:.0%}"}
    return {**shown, "full build s": full, "delta build s": new, **share}


def _stream(start: int, rows: int) -> pa.RecordBatchReader:
    starts = range(start, start + rows, BATCH_ROWS)
    batches = (batch(first, min(BATCH_ROWS, start + rows - first)) for first in starts)
    return pa.RecordBatchReader.from_batches(ARROW, batches)


# A join that does not fit --------------------------------------------------------------------------------------------

JOIN = """
pipeline: joined
nodes:
  left_rows: {source: bench.main.left_rows}
  right_rows: {source: bench.main.right_rows}
  pairs: {join: {left: left_rows, right: right_rows, on: [key]}}
  narrow: {transform: "select id, key, value, length(note) + length(text) as size, c1 + c2 + c3 + c4 as sum from pairs"}
outputs:
  - {dataset: bench.main.joined, from: narrow, arm: iceberg, strategy: replace, primary_key: [id]}
"""


def join_load(folder: str) -> Row:
    """Write the two sides; the right one's rows alone are more than the memory limit."""
    with lakeward.open(Path(folder) / "home") as workspace:
        left = {"id": "long", "key": "long", "value": "double", "note": "string"}
        right = {"key": "long", "text": "string", **dict.fromkeys(MORE, "long")}
        workspace.create_dataset("bench.main.left_rows", left, ["id"], arm="iceberg").write(_left())
        workspace.create_dataset("bench.main.right_rows", right, ["key"], arm="iceberg").write(_right())
        workspace.apply(_project(Path(folder), {"joined.yml": JOIN}))
    return {}


def join_build(folder: str) -> Row:
    """Build the join in a process that did nothing else before."""
    os.environ["LAKEWARD_COMPUTE__MEMORY_LIMIT"] = MEMORY_LIMIT
    with lakeward.open(Path(folder) / "home") as workspace:
        with Peak() as peak, _Spilled(Path(folder) / "home" / "scratch") as spilled:
            seconds = _seconds(lambda: workspace.build("joined"))
        joined = workspace.dataset("bench.main.joined")
        assert joined.row_count == LEFT_ROWS
        sizes = {size for each in joined.read(columns=["size"]) for size in each.column("size").unique().to_pylist()}
        assert sizes == {LEFT_BYTES + RIGHT_BYTES}, sizes
    assert spilled.most > 0, "it did not spill"
    highest = peak.highest / 1e6
    shown: Row = {"left": f"{LEFT_ROWS:,}", "right": f"{RIGHT_ROWS:,}", "memory_limit": MEMORY_LIMIT}
    return {
        **shown,
        "build s": seconds,
        "spilled MB": spilled.most / 1e6,
        "peak RSS MB": highest,
        "limit": PEAK_LIMIT_MB,
    }


class _Spilled:
    """Looks now and then how much lies in a directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.most = 0

    def __enter__(self) -> _Spilled:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            self.most = max(self.most, sum(map(_size, self._folder.rglob("*"))))

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size if file.is_file() else 0
    except FileNotFoundError:
        # Removed since it was listed.
        return 0


def _left() -> pa.RecordBatchReader:
    fields = [("id", pa.int64()), ("key", pa.int64()), ("value", pa.float64()), ("note", pa.string())]
    schema = pa.schema(fields)

    def made(start: int) -> pa.RecordBatch:
        ids = np.arange(start, min(start + BATCH_ROWS, LEFT_ROWS))
        random = np.random.default_rng([1, start])
        columns = map(pa.array, (ids, random.integers(0, RIGHT_ROWS, len(ids)), random.random(len(ids))))
        return pa.RecordBatch.from_arrays([*columns, _texts(random, len(ids), LEFT_BYTES)], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, map(made, range(0, LEFT_ROWS, BATCH_ROWS)))


def _right() -> pa.RecordBatchReader:
    schema = pa.schema([("key", pa.int64()), ("text", pa.string()), *((name, pa.int64()) for name in MORE)])

    def made(start: int) -> pa.RecordBatch:
        keys = np.arange(start, min(start + BATCH_ROWS, RIGHT_ROWS))
        texts = _texts(np.random.default_rng([2, start]), len(keys), RIGHT_BYTES)
        return pa.RecordBatch.from_arrays([pa.array(keys), texts, *[pa.array(keys)] * len(MORE)], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, map(made, range(0, RIGHT_ROWS, BATCH_ROWS)))


def _texts(random: np.random.Generator, rows: int, size: int) -> pa.Array:
    letters = random.integers(97, 123, rows * size, dtype=np.uint8)
    offsets = np.arange(0, len(letters) + 1, size, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))


def join() -> Row:
    """Write the sides in one process, and build in another one."""
    with _scratch() as scratch:
        in_fresh_process(join_load, str(scratch))
        return in_fresh_process(join_build, str(scratch))


# All -----------------------------------------------------------------------------------------------------------------


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lw-", dir=os.environ.get("BENCH_DIR")) as folder:
        yield Path(folder)


def _project(scratch: Path, files: dict[str, str]) -> Path:
    folder = scratch / "project" / "pipelines"
    folder.mkdir(parents=True)
    (folder.parent / "lakeward.toml").touch()
    for name, text in files.items():
        (folder / (name if "." in name else f"{name}.sql")).write_text(text, encoding="utf-8")
    return folder.parent


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main(*parts: str) -> str:
    """Run all parts, or those that are named (`tpch`, `delta`, `join`), and return their tables."""
    found: list[str] = []
    if not parts or "tpch" in parts:
        runs = {arm: in_fresh_process(tpch, arm, scale) for arm, scale in SCALES.items()}
        found.append(table("TPC-H, 22 queries", [row for run in runs.values() for row in run["total"]]))  # type: ignore[attr-defined]
        found += [table(f"TPC-H on {arm}, scale {SCALES[arm]}", run["each"]) for arm, run in runs.items()]  # type: ignore[arg-type]
    if not parts or "delta" in parts:
        strategies = ("append_always", "append_new", "snapshot_replace")
        for name, expectations in (("", ""), (", six expectations", EXPECTATIONS)):
            rows = [in_fresh_process(delta, "iceberg", each, expectations) for each in strategies]
            found.append(table(f"Delta build of 1 %{name}", rows))
    if not parts or "join" in parts:
        found.append(table("Join of more than the memory limit", [join()]))
    return "\n".join(found)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
