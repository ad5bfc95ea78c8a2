"""Machines whose clocks are two hours apart agree: leases, commits and watermarks go by the database's clock alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.crashes import unclean
from support.databases import WORKSPACE, made_database
from support.ledger import expire, rows

SCRIPT = Path(__file__).with_name("machine.py")
HOUR = 3600
LEASE_SECONDS = 60


class Machine:
    """A process with a clock of its own."""

    def __init__(self, process: subprocess.Popen[str], place: dict[str, object]) -> None:
        self._process = process
        self.now: float = self._ask(place)["now"]

    def do(self, **command: object) -> Any:
        return self._ask(command)["answer"]

    def _ask(self, command: dict[str, object]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the machine is down"
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def machine(workspace: lakeward.Workspace, home: Path, skew: float) -> Iterator[Machine]:
    sources, tests = Path(lakeward.__file__).parents[1], SCRIPT.parents[1]
    place: dict[str, object] = {
        "home": str(home),
        "database_url": workspace.database.libpq_url,
        "warehouse": workspace.settings.values.warehouse,
    }
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(sources), str(tests)])}
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), str(skew)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            yield Machine(process, place)
        finally:
            assert process.stdin is not None
            process.stdin.close()


@pytest.fixture(scope="module")
def ws(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    """The workspace of all machines."""
    root = tmp_path_factory.mktemp("clocks")
    url = made_database(postgres, WORKSPACE)
    with lakeward.open(root / "home", database_url=url, warehouse=root / "warehouse") as workspace:
        yield workspace


@pytest.fixture(scope="module")
def machines(ws: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine]]:
    """One machine an hour ahead, one an hour behind."""
    root = tmp_path_factory.mktemp("machines")
    with machine(ws, root / "ahead", HOUR) as ahead, machine(ws, root / "behind", -HOUR) as behind:
        # The clocks are what they should be: else nothing would be proved.
        assert ahead.now - time.time() == pytest.approx(HOUR, abs=60)
        assert behind.now - time.time() == pytest.approx(-HOUR, abs=60)
        yield ahead, behind


def now(ws: lakeward.Workspace) -> Any:
    return rows(ws.database, "SELECT clock_timestamp()")[0][0]


def test_commits_and_watermarks(ws: lakeward.Workspace, machines: tuple[Machine, Machine]) -> None:
    source = ws.create_dataset("main.clocks.source", {"id": "long"})
    names = [ws.create_dataset(f"main.clocks.{arm}", {"id": "long"}, arm=arm).name for arm in ("postgres", "iceberg")]
    source.write([{"id": 0}])
    before = now(ws)
    # Ahead, behind, ahead, behind: every other one is two hours before the one that came first.
    for turn in range(4):
        source.write([{"id": turn}])
        answer = machines[turn % 2].do(write=[turn], windows={source.name: [turn, turn + 1]}, names=names)
        assert answer == [turn + 1] * 2, answer
        marks = rows(ws.database, "SELECT DISTINCT version FROM lakeward.watermarks")
        assert marks == [(turn + 1,)]
    after = now(ws)
    for name in names:
        dataset = ws.dataset(name)
        history = sorted(dataset.history(), key=lambda each: each.version)
        instants = [instant for each in history for instant in (each.opened_at, each.committed_at)]
        assert instants == sorted(instants)
        assert before <= instants[0] and instants[-1] <= after
        made = dataset.to_arrow(identity=True).sort_by("id")
        assert made["id"].to_pylist() == [0, 1, 2, 3]
        assert all(before <= instant <= after for instant in made["__created_at"].to_pylist())
        assert sorted(dataset.to_arrow(since=2)["id"].to_pylist()) == [2, 3]
    assert unclean(ws, names) == []


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_leases(ws: lakeward.Workspace, machines: tuple[Machine, Machine], arm: str) -> None:
    ahead, behind = machines
    for holder, other in ((ahead, behind), (behind, ahead)):
        dataset = ws.create_dataset(
            f"main.clocks.{arm}_{'ahead' if holder is ahead else 'behind'}", {"id": "long"}, arm=arm
        )
        assert holder.do(open=dataset.name) == 1
        ((left,),) = rows(
            ws.database,
            "SELECT extract(epoch FROM l.lease_until - clock_timestamp())::float8 FROM lakeward.leases l "
            "JOIN lakeward.dataset_transactions t ON t.id = l.transaction_id WHERE t.dataset_id = :id",
            id=dataset.record.id,
        )
        assert left == pytest.approx(LEASE_SECONDS, abs=30)
        # By the other's clock it ran out two hours ago, or has two hours to go.
        assert other.do(recover=True) == []
        assert ws.recover() == []
        expire(ws.database)
        assert other.do(recover=True) == [[dataset.name, "aborted"]]
        assert other.do(write=[1], windows={}, names=[dataset.name]) == [2]
        assert holder.do(write=[2], windows={}, names=[dataset.name]) == [3]
        assert unclean(ws, [dataset.name]) == []
