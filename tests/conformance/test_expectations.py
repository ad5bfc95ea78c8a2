"""What is expected of an output is judged alike on either arm, and a process that dies meanwhile leaves nothing."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import ExpectationFailed

EXPECTATIONS = """\
    expectations:
      - {row_count: {min: 1, max: 40}}
      - {primary_key: {on_fail: warn}}
      - {not_null: {columns: [id, price], on_fail: warn}}
      - {row: {check: "price > 0 or name is null", on_fail: quarantine}}
      - {accepted_values: {column: name, values: ["a", "b", "ü"], on_fail: warn}}
      - {relationship: {columns: [id], dataset: main.raw.known, key: [id], on_fail: warn}}
      - {value: {sql: "sum(price)", within_of_previous: 0.5, on_fail: warn}}
      - {value: {sql: "avg(weight)", min: 0, on_fail: warn}}
"""


@pytest.fixture
def opened(database_url: str, tmp_path: Path) -> Iterator[lakeward.Workspace]:
    with lakeward.open(tmp_path / "home", database_url=database_url, warehouse=tmp_path / "warehouse") as workspace:
        workspace.create_dataset(
            "main.raw.s", {"id": "long", "name": "string", "price": "decimal(10,2)", "weight": "double"}
        )
        workspace.create_dataset("main.raw.known", {"id": "long"}, arm="iceberg").write([{"id": 1}, {"id": None}])
        yield workspace


def project(folder: Path, *outputs: str, expectations: str = EXPECTATIONS) -> Path:
    (folder / "pipelines").mkdir(parents=True, exist_ok=True)
    (folder / "lakeward.toml").touch()
    text = "pipeline: p\nnodes:\n  s: {source: main.raw.s}\noutputs:\n"
    for arm in outputs:
        text += f"  - dataset: main.out.{arm}\n    from: s\n    strategy: append_always\n    arm: {arm}\n"
        text += f"    primary_key: []\n{expectations.replace('primary_key: {on_fail: warn}', 'row_count: {min: 0}')}"
    (folder / "pipelines" / "p.yml").write_text(text)
    return folder


def rows(rng: random.Random, count: int) -> list[dict[str, object]]:
    return [
        {
            "id": rng.choice([None, 1, 2, 3]),
            "name": rng.choice([None, "a", "b", "ü", "c"]),
            "price": rng.choice([None, -1, 1, 25]),
            "weight": rng.choice([None, -0.5, 0.25, float("nan"), float("inf")]),
        }
        for _ in range(count)
    ]


def test_both_arms_find_the_same_in_every_version(
    opened: lakeward.Workspace, tmp_path: Path, rng: random.Random
) -> None:
    opened.apply(project(tmp_path / "project", "postgres", "iceberg"))
    sizes = [0, 1, 9, 0, 25, 12]
    written = 0
    for count in sizes:
        opened.dataset("main.raw.s").write(rows(rng, count) or [{"id": 1, "name": None, "price": None, "weight": 0.0}])
        written += count or 1
        try:
            opened.build("p")
        except ExpectationFailed:
            assert written > 40
        found = [
            [[result.to_json() for result in each.results] for each in opened.dataset(f"main.out.{arm}").expectations()]
            for arm in ("postgres", "iceberg")
        ]
        # Where bad rows went is named by the output.
        assert str(found[0]).replace("main.out.postgres", "main.out.iceberg") == str(found[1])
        for arm in ("postgres", "iceberg"):
            out, bad = opened.dataset(f"main.out.{arm}"), opened.dataset(f"main.out.{arm}__quarantine")
            assert out.digest() == opened.dataset("main.out.iceberg").digest()
            if written <= 40:
                assert out.row_count + bad.row_count == written
    assert opened.dataset("main.out.iceberg").row_count > 0


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_killed_while_it_judges_leaves_nothing(
    opened: lakeward.Workspace, tmp_path: Path, database_url: str, arm: str
) -> None:
    opened.dataset("main.raw.s").write([{"id": 1, "name": "a", "price": 1, "weight": 1.0}])
    opened.apply(project(tmp_path / "project", arm))
    opened.build("p")
    bad = {"id": 2, "name": "a", "price": -1, "weight": 1.0}
    opened.dataset("main.raw.s").write([{"id": 2, "name": "a", "price": 2, "weight": 1.0}, bad])
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, signal, sys, lakeward\nfrom lakeward.pipelines.judge import Judge\n"
        "home, url, warehouse = sys.argv[1:]\n"
        "def dies(self, query, **rows):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Judge.run = dies\n"
        "with lakeward.open(home, database_url=url, warehouse=warehouse) as ws:\n    ws.build('p')\n"
    )
    arguments = [sys.executable, str(script), str(tmp_path / "home"), database_url, str(tmp_path / "warehouse")]
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    out, quarantine = opened.dataset(f"main.out.{arm}"), opened.dataset(f"main.out.{arm}__quarantine")
    assert (out.version, out.row_count, quarantine.version) == (1, 1, 0)
    opened.recover()
    assert [(each.status, each.version) for each in out.history()] == [("aborted", 2), ("committed", 1)]
    assert [each.version for each in out.expectations()] == [1]
    opened.build("p")
    assert (out.row_count, quarantine.row_count) == (2, 1)
    assert out.verify().equal
