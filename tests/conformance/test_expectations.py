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
from support.arms import stored_versions
from support.crashes import unclean

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


@pytest.mark.parametrize("mode", ["dual", "iceberg_dual"])
def test_mirrored_outputs_are_judged_before_either_arm_shows_them(
    opened: lakeward.Workspace, tmp_path: Path, mode: str
) -> None:
    """Quarantined rows are mirrored, too; a refused build leaves nothing on either arm; a warning stops neither."""
    opened.flags.set(writer="pipeline.output", mode=mode)
    opened.apply(mirrored_project(tmp_path / "project"))
    good = [{"id": number, "name": "a", "price": 1, "weight": 1.0} for number in range(3)]
    opened.dataset("main.raw.s").write([*good, {"id": 3, "name": "a", "price": -1, "weight": 1.0}])
    opened.build("m")
    out, quarantine = (opened.dataset(f"main.out.m{suffix}") for suffix in ("", "__quarantine"))
    # The quarantine is made on the arm of its output; mirrored it is by a flip of its own.
    opened.flip(quarantine.name).run(until="mirror")
    # A warning: a name that is not among those accepted. And one more row for the quarantine.
    opened.dataset("main.raw.s").write(
        [{"id": id_, "name": "c", "price": price, "weight": 1.0} for id_, price in ((4, 1), (5, -1))]
    )
    opened.build("m")
    assert [result.outcome for result in out.expectations()[0].results] == ["passed", "failed", "failed"]
    before = {each.name: (each.version, each.digest()) for each in (out, quarantine)}
    opened.dataset("main.raw.s").write(
        [{"id": 10 + number, "name": "a", "price": 1, "weight": 1.0} for number in range(9)]
    )
    with pytest.raises(ExpectationFailed):
        opened.build("m")
    assert unclean(opened, [out.name, quarantine.name]) == []
    for each, rows in ((out, 4), (quarantine, 2)):
        assert each.record.route.mode == mode
        assert (each.version, each.digest()) == before[each.name]
        assert {arm: each.to_arrow(arm=arm).num_rows for arm in ("postgres", "iceberg")} == {
            "postgres": rows,
            "iceberg": rows,
        }
        assert set(each.verify().digests) == {"postgres", "iceberg"}
    assert stored_versions(opened, out.record.id) == [1, 2]


def mirrored_project(folder: Path) -> Path:
    (folder / "pipelines").mkdir(parents=True)
    (folder / "lakeward.toml").touch()
    (folder / "pipelines" / "m.yml").write_text("""\
pipeline: m
nodes:
  s: {source: main.raw.s}
outputs:
  - dataset: main.out.m
    from: s
    strategy: append_always
    primary_key: []
    expectations:
      - {row_count: {max: 9}}
      - {row: {check: "price > 0", on_fail: quarantine}}
      - {accepted_values: {column: name, values: ["a"], on_fail: warn}}
""")
    return folder
