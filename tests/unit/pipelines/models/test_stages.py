"""Queries and models in turn: what is shared predicts once, what fails or is killed leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakeward
from lakeward.compute import duckdb_session
from lakeward.compute.duckdb_session import Session
from lakeward.errors import ExpectationFailed
from lakeward.pipelines.models.registered import ModelVersion
from lakeward.pipelines.project import Project

OTHER = {"postgres": "iceberg", "iceberg": "postgres"}

COUNTING = """
def f(batch):
    with open({calls!r}, "a") as file:
        file.write(f"{{batch.num_rows}}\\n")
    return [None if v is None else v + 1 for v in batch["v"].to_pylist()]
"""

SHARED = """\
pipeline: p
nodes:
  rows: {{source: main.raw.rows}}
  scored: {{model: {{input: rows, model: m@1, features: [id, v], outputs: {{y: double}}, batch_rows: 100}}}}
  sides: {{split: {{input: scored, where: "y > 100", true: high, false: low}}}}
  again: {{model: {{input: high, model: n@1, features: {{id: id, v: y}}, outputs: {{z: double}}, batch_rows: 100}}}}
  sums: {{transform: "select id % 2 as odd, sum(y) as total, count(*) as n from scored group by all"}}
outputs:
  - {{dataset: main.m.high, from: again, strategy: replace, primary_key: [id], arm: {arm}}}
  - {{dataset: main.m.low, from: low, strategy: replace, primary_key: [id], arm: {other}}}
  - {{dataset: main.m.sums, from: sums, strategy: replace, primary_key: [odd], arm: {arm}}}
"""


def fill(rows: lakeward.Dataset, count: int, start: int = 1) -> None:
    rows.write([{"id": each, "v": float(each), "t": str(each)} for each in range(start, start + count)])


def test_what_several_outputs_read_is_predicted_once(
    workspace: lakeward.Workspace,
    rows: lakeward.Dataset,
    add: Callable[..., ModelVersion],
    project: Callable[[str], Project],
    arm: str,
    tmp_path: Path,
) -> None:
    fill(rows, 250)
    calls = tmp_path / "calls"
    add(COUNTING.format(calls=str(calls)))
    add("def f(batch):\n    return [2 * v for v in batch['v'].to_pylist()]\n", "z:double", name="n")
    workspace.pipelines.apply(project(SHARED.format(arm=OTHER[arm], other=arm)))
    [build] = workspace.build("p")
    assert len(build.transactions) == 3
    assert calls.read_text().split() == ["100", "100", "50"]
    high = {
        row["id"]: (row["t"], row["y"], row["z"]) for row in workspace.dataset("main.m.high").to_arrow().to_pylist()
    }
    low = {row["id"]: row["y"] for row in workspace.dataset("main.m.low").to_arrow().to_pylist()}
    assert high == {each: (str(each), each + 1.0, 2 * (each + 1.0)) for each in range(100, 251)}
    assert low == {each: each + 1.0 for each in range(1, 100)}
    sums = {row["odd"]: (row["total"], row["n"]) for row in workspace.dataset("main.m.sums").to_arrow().to_pylist()}
    assert sums == {0: (sum(range(3, 252, 2)), 125), 1: (sum(range(2, 251, 2)), 125)}
    assert list((tmp_path / "home" / "scratch").glob("compute-*")) == []


def test_expectations_see_what_was_predicted(
    workspace: lakeward.Workspace,
    rows: lakeward.Dataset,
    add: Callable[..., ModelVersion],
    project: Callable[[str], Project],
    arm: str,
) -> None:
    rows.write([{"id": each, "v": None if each == 3 else float(each), "t": ""} for each in range(1, 11)])
    add("def f(batch):\n    return [float('nan') if v == 7 else v for v in batch['v'].to_pylist()]\n")
    head, _, _ = SHARED.format(arm=OTHER[arm], other=arm).partition("  sides:")
    output = f"outputs:\n  - {{dataset: main.m.o, from: scored, strategy: replace, primary_key: [id], arm: {arm}"
    workspace.pipelines.apply(project(head + output + ", expectations: [{not_null: [y]}]}\n"))
    with pytest.raises(ExpectationFailed, match="not_null"):
        workspace.build("p")
    apart = ", expectations: [{row: {check: 'y is not null and y < 9', on_fail: quarantine}}, {not_null: [y]}]}\n"
    workspace.pipelines.apply(project(head + output + apart))
    workspace.build("p")
    good = workspace.dataset("main.m.o").to_arrow().to_pylist()
    bad = workspace.dataset("main.m.o__quarantine").to_arrow().to_pylist()
    # DuckDB's NaN is larger than every number.
    assert sorted(row["id"] for row in good) == [1, 2, 4, 5, 6, 8]
    assert sorted(row["id"] for row in bad) == [3, 7, 9, 10]
    assert all(row["y"] == row["v"] for row in good)


def test_a_function_may_stand_beside_classes_whose_annotations_are_text(
    rows: lakeward.Dataset, add: Callable[..., ModelVersion], build: Callable[..., lakeward.Dataset]
) -> None:
    fill(rows, 3)
    add(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n"
        "@dataclass\nclass Scale:\n    by: float\n\n"
        "def f(batch):\n    return [Scale(2.0).by * v for v in batch['v'].to_pylist()]\n"
    )
    assert sorted(row["y"] for row in build().to_arrow().to_pylist()) == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("strategy", ["append_always", "append_new", "snapshot_replace"])
def test_only_new_rows_are_predicted(
    workspace: lakeward.Workspace,
    rows: lakeward.Dataset,
    add: Callable[..., ModelVersion],
    build: Callable[..., lakeward.Dataset],
    tmp_path: Path,
    strategy: str,
) -> None:
    fill(rows, 10)
    calls = tmp_path / "calls"
    add(COUNTING.format(calls=str(calls)))
    out = build(strategy=strategy)
    fill(rows, 3, start=11)
    [built] = workspace.build("p")
    assert (built.transactions[0].rows_in, built.transactions[0].rows_added) == (3, 3)
    assert calls.read_text().split() == ["10", "3"]
    assert {row["id"]: row["y"] for row in out.to_arrow().to_pylist()} == {each: each + 1.0 for each in range(1, 14)}
    assert workspace.build("p")[0].up_to_date


@pytest.mark.parametrize("arm", ["postgres"])
def test_what_the_next_query_does_not_need_is_not_read(
    workspace: lakeward.Workspace,
    rows: lakeward.Dataset,
    add: Callable[..., ModelVersion],
    project: Callable[[str], Project],
    arm: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows on Postgres stream, and that is seen here; those on Iceberg are read in place, where the engine chooses."""
    fill(rows, 5)
    read: list[tuple[str, ...]] = []
    original = workspace.storage.read

    def spying(record: object, request: object, **more: object) -> object:
        read.append(request.columns)  # type: ignore[attr-defined]
        return original(record, request, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(workspace.storage, "read", spying)
    head, _, _ = SHARED.format(arm=OTHER[arm], other=arm).partition("  sides:")
    few = "  few: {transform: 'select t, y from scored'}\n"
    add("def f(batch):\n    return [2.0] * batch.num_rows\n", features="v:double")
    output = "outputs:\n  - {dataset: main.m.o, from: few, strategy: replace}\n"
    workspace.pipelines.apply(project(head.replace("[id, v]", "[v]") + few + output))
    workspace.build("p")
    assert [sorted(columns) for columns in read] == [["t", "v"]]
    assert workspace.dataset("main.m.o").to_arrow().to_pylist() == [{"t": str(each), "y": 2.0} for each in range(1, 6)]


def test_what_the_next_query_does_not_need_is_not_read_in_place(
    workspace: lakeward.Workspace,
    add: Callable[..., ModelVersion],
    project: Callable[[str], Project],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows on Iceberg are read by the engine itself: what it scans is in its plan."""
    columns = {"id": "long", "v": "double", "t": "string"}
    rows = workspace.create_dataset("main.raw.rows", columns, ["id"], arm="iceberg")
    fill(rows, 5)
    scanned: list[list[str]] = []

    sessions: list[Session] = []
    start, exported = Session.start, duckdb_session.exported

    def starting(self: Session, *given: Any) -> Any:
        sessions.append(self)
        return start(self, *given)

    def explaining(sql: str, columns: Any) -> str:
        # Right before the query runs, with its inputs in place.
        nodes = json.loads(sessions[-1]._explained(sql, sql))
        for node in nodes:
            nodes += node["children"]
        scanned.extend(node["extra_info"]["Projections"] for node in nodes if node["name"] == "READ_PARQUET")
        return exported(sql, columns)

    monkeypatch.setattr(Session, "start", starting)
    monkeypatch.setattr(duckdb_session, "exported", explaining)
    head, _, _ = SHARED.format(arm="postgres", other="iceberg").partition("  sides:")
    few = "  few: {transform: 'select t, y from scored'}\n"
    add("def f(batch):\n    return [2.0] * batch.num_rows\n", features="v:double")
    output = "outputs:\n  - {dataset: main.m.o, from: few, strategy: replace}\n"
    workspace.pipelines.apply(project(head.replace("[id, v]", "[v]") + few + output))
    workspace.build("p")
    needed = [f"c{rows.schema.column(name).field_id}" for name in ("v", "t")]
    assert [sorted(names) for names in scanned] == [sorted(needed)]
    assert workspace.dataset("main.m.o").row_count == 5


KILLED = """
import os

def f(batch):
    if batch["id"][0].as_py() > 64:
        os.kill(os.getpid(), 9)
    return batch["v"]
"""


def test_a_process_that_is_killed_in_the_middle_leaves_nothing(
    workspace: lakeward.Workspace,
    rows: lakeward.Dataset,
    add: Callable[..., ModelVersion],
    build: Callable[..., lakeward.Dataset],
    database_url: str,
    tmp_path: Path,
) -> None:
    fill(rows, 500)
    add("def f(batch):\n    return batch['v']\n")
    out = build()
    before = out.digest()
    add(KILLED)
    text = Path(tmp_path / "project" / "pipelines" / "p.yml").read_text()
    (tmp_path / "project" / "pipelines" / "p.yml").write_text(text.replace("m@1", "m@2"))
    workspace.apply(tmp_path / "project")
    script = textwrap.dedent(f"""
        import lakeward
        with lakeward.open({str(tmp_path / "home")!r}, database_url={database_url!r},
                           warehouse={str(tmp_path / "warehouse")!r}) as ws:
            ws.build("p")
    """)
    environment = {**os.environ, "LAKEWARD_LEDGER__LEASE_SECONDS": "1"}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, timeout=120)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert (out.version, out.digest()) == (1, before)
    add("def f(batch):\n    return [v * 2 for v in batch['v'].to_pylist()]\n")
    (tmp_path / "project" / "pipelines" / "p.yml").write_text(text.replace("m@1", "m@3"))
    workspace.apply(tmp_path / "project")
    workspace.build("p")
    assert {row["id"]: row["y"] for row in out.to_arrow().to_pylist()} == {each: each * 2.0 for each in range(1, 501)}
    assert [each.status for each in workspace.transactions() if each.dataset == "main.m.out"] == [
        "committed",
        "aborted",
        "committed",
    ]
