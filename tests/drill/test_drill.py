"""A short drill, run as users run it; and that the drill finds what it looks for."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

import lakeward
from lakeward.cli.app import main
from lakeward.cli.drill_process import rooms_of
from lakeward.storage.protocol import POINTS
from lakeward.storage.verbs import VERBS
from lakeward.testing.drill import run as drill
from lakeward.testing.drill import worker
from lakeward.testing.drill.flips import KILLED_AT
from lakeward.testing.drill.matrix import Case, Outcome
from lakeward.testing.drill.model import Log, Model
from lakeward.testing.drill.rounds import Round
from lakeward.testing.drill.writes import COLUMNS, PRIMARY_KEY, Chooser, Write

CASES, ROUNDS, FLIP_SECONDS = 9, 3, 2
"""Chosen anew in every run. `make drill` takes every case, and many rounds."""


def run_drill(*arguments: str, **environment: str) -> tuple[int, dict[str, object]]:
    # Without the settings of whoever runs the tests: they could name a workspace.
    own = {name: value for name, value in os.environ.items() if not name.startswith("LAKEWARD_")}
    sources = str(Path(lakeward.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "lakeward.cli.app", "ledger", "drill", "--output", "json", *arguments],
        capture_output=True,
        text=True,
        env={**own, "PYTHONPATH": sources, **environment},
        cwd="/",
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_short_drill_is_clean(rng: random.Random) -> None:
    """C01, C04, C06: whatever is killed, stopped or cut off, no row is lost and none is there twice."""
    seed = rng.randrange(2**31)
    amount = ("--rounds", str(ROUNDS), "--cases", str(CASES), "--flips", str(FLIP_SECONDS))
    code, document = run_drill(*amount, "--seed", str(seed))
    assert document["violations"] == []
    assert code == 0
    assert len(document["faults"]) == CASES  # type: ignore[arg-type]
    assert len(document["rounds"]) == ROUNDS  # type: ignore[arg-type]
    assert document["flips"]["done"][:3] == ["switch", "revert", "switch"]  # type: ignore[index]
    assert document["seed"] == seed


def test_on_a_database_of_ones_own(new_database: Callable[[], str], tmp_path: Path) -> None:
    """Nothing of it is taken away or restarted, and the drill says what it leaves there."""
    url = new_database()
    code, document = run_drill(
        *("--rounds", "1", "--cases", "6", "--flips", "0"),
        LAKEWARD_DATABASE_URL=url,
        LAKEWARD_WAREHOUSE=str(tmp_path / "warehouse"),
    )
    assert (code, document["violations"]) == (0, [])
    assert {each["fault"] for each in document["faults"]} <= {"kill -9", "SIGSTOP", "exception"}  # type: ignore[attr-defined]
    (left,) = document["left"]  # type: ignore[misc]
    assert str(document["catalog"]) in left
    with psycopg.connect(url) as connection:
        catalogs = connection.execute("SELECT name FROM lakeward.catalogs").fetchall()
    assert (document["catalog"],) in catalogs


def test_dry_run_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "drill", "--dry-run", "--home", str(tmp_path / "home")]) == 0
    assert "scratch catalog" in capsys.readouterr().out
    assert not (tmp_path / "home").exists()


def test_a_violation_is_told_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = drill.Report(
        drill.Plan(1, 17, 1),
        "lakeward drill x",
        (),
        [Outcome(Case("kill -9", "both", "append", POINTS[3], 1), "unchanged", "killed", ("a row is lost",))],
        [Round(1, "killed", violations=["a row is there twice"])],
    )
    monkeypatch.setattr(drill, "run", lambda *_: broken)
    page = tmp_path / "page.md"
    assert main(["ledger", "drill", "--seed", "17", "--cases", "1", "--markdown", str(page)]) == 1
    shown = capsys.readouterr().out
    for text in ("a row is lost", "a row is there twice", "VIOLATED (1 of 1)", "--seed 17 --cases 1"):
        assert text in shown
    assert "a row is lost" in page.read_text()


@pytest.fixture
def model(workspace: lakeward.Workspace) -> Model:
    """Two datasets with one acknowledged build."""
    rooms = rooms_of(workspace)
    records = [
        workspace.create_dataset(f"main.drill.{arm}", COLUMNS, PRIMARY_KEY, arm=arm).record
        for arm in ("postgres", "iceberg")
    ]
    return Model(rooms, Log(), records)


def write(workspace: lakeward.Workspace, model: Model, number: int, *, told: str = "acknowledged") -> Write:
    """Write like a worker does, and note down what it was told."""
    names = tuple(model.datasets)
    asked = model.log.asked(Write(number, tuple((name, "append", (number, number + 1)) for name in names)))
    worker.Worker(model.rooms, worker.Switch(), None)._write(asked)  # type: ignore[arg-type]
    model.log.answers[asked.label] = told
    return asked


def test_the_model_agrees_with_what_is_right(workspace: lakeward.Workspace, model: Model) -> None:
    write(workspace, model, 1)
    write(workspace, model, 5)
    assert model.check(random.Random(1)) == []


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("DELETE FROM lakeward.dataset_rows WHERE row_id = 0", "rows are lost"),
        ('UPDATE lakeward.dataset_rows SET data = \'{"id": 1, "note": "other"}\' WHERE row_id = 0', "rows too many"),
        ("UPDATE lakeward.dataset_rows SET row_index = 1", "__row_index has gaps"),
        ("UPDATE lakeward.dataset_transactions SET published_at = NULL", "is still unpublished"),
        ("UPDATE lakeward.watermarks SET version = version + 1", "the watermark is"),
        ("UPDATE lakeward.datasets SET row_count = 7", "the ledger counts 7"),
    ],
)
def test_the_model_finds(workspace: lakeward.Workspace, model: Model, statement: str, complaint: str) -> None:
    write(workspace, model, 1)
    with psycopg.connect(workspace.database.libpq_url) as connection:
        connection.execute(statement)  # type: ignore[call-overload]
    assert any(complaint in what for what in model.check(random.Random(1)))


def test_the_model_finds_false_answers(workspace: lakeward.Workspace, model: Model) -> None:
    write(workspace, model, 1, told="refused")
    assert model.check(random.Random(1)) == ["drill 1 was refused and is committed"]
    model.log.asked(Write(9, tuple((name, "append", (9,)) for name in model.datasets)))
    model.log.answers.update({"drill 1": "acknowledged", "drill 9": "acknowledged"})
    assert model.check(random.Random(1)) == ["drill 9 was acknowledged and is not committed"]


def test_the_model_follows_every_mode(workspace: lakeward.Workspace, model: Model, rng: random.Random) -> None:
    chooser = Chooser(itertools.count(1))
    for mode in [*VERBS, *VERBS, *VERBS]:
        chooser.settled()
        # Of a deletion by both, one might have nothing to do.
        for names in [(name,) for name in model.datasets] if mode == "delete" else [tuple(model.datasets)]:
            asked = model.log.asked(chooser.write(rng, [(name, mode) for name in names]))
            told = worker.Worker(model.rooms, worker.Switch(), None)._write(asked)  # type: ignore[arg-type]
            model.log.answers[asked.label] = str(told["answer"])
            model.log.nothing[asked.label] = told["nothing"]  # type: ignore[assignment]
            assert told["answer"] == "acknowledged"
            assert not told["nothing"] or mode == "delete"
        assert model.check(rng) == []
    assert all(len(each.content) > 3 * (len(VERBS) - 1) for each in model.datasets.values())


def test_the_model_finds_a_key_twice_and_a_row_that_was_not_deleted(
    workspace: lakeward.Workspace, model: Model
) -> None:
    name = next(iter(model.datasets))
    for number, mode, ids in ((1, "append", (1, 2, 3)), (4, "changes", (2, 3))):
        asked = model.log.asked(Write(number, ((name, mode, ids),)))
        worker.Worker(model.rooms, worker.Switch(), None)._write(asked)  # type: ignore[arg-type]
    assert model.check(random.Random(1)) == []
    with psycopg.connect(workspace.database.libpq_url) as connection:
        connection.execute("UPDATE lakeward.dataset_rows SET until = NULL")
    complaints = " ".join(model.check(random.Random(1)))
    assert "2 rows too many" in complaints
    assert "__row_index has gaps, or a value twice" in complaints


def test_a_write_that_says_that_it_had_nothing_to_do_must_be_right(workspace: lakeward.Workspace, model: Model) -> None:
    name = next(iter(model.datasets))
    write(workspace, model, 1)
    for number, ids, complaints in ((8, (99,), []), (9, (1,), ["drill 9 was acknowledged and is not committed"])):
        asked = model.log.asked(Write(number, ((name, "delete", ids),)))
        model.log.answers[asked.label] = "acknowledged"
        model.log.nothing[asked.label] = {name: 1}
        assert model.check(random.Random(1)) == complaints


class Script:
    """What a worker hears and says instead of a socket."""

    def __init__(self, *commands: dict[str, object]) -> None:
        self._commands = [json.dumps(each) for each in commands]
        self.said: list[dict[str, object]] = []

    def readline(self) -> str:
        return self._commands.pop(0) if self._commands else ""

    def write(self, line: str) -> None:
        self.said.append(json.loads(line))

    def flush(self) -> None:
        pass


def test_a_flip_is_completed_and_flipped_back_and_held_at_each_step_in_between(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    done = [
        # What, where it is held on its way, and the route after it. What is done already is not done once more.
        ("switch", None, "iceberg_dual"),
        *(("complete", step, "iceberg_native") for step in KILLED_AT["complete"][:1]),
        ("complete", None, "iceberg_native"),
        ("back", "flip:complete", "pg"),
        ("back", None, "pg"),
        ("switch", None, "iceberg_dual"),
        ("revert", None, "dual"),
        ("cancel", "maintain:emptied", "pg"),
    ]
    switch = worker.Switch()
    with lakeward.open(database_url=new_database(), warehouse=tmp_path / "warehouse", faults=switch) as workspace:
        dataset = workspace.create_dataset("main.drill.flipped", COLUMNS, PRIMARY_KEY)
        dataset.write([{"id": number, "note": "a"} for number in range(5)])
        for do, park, mode in done:
            told = {
                "role": "flip",
                "dataset": dataset.name,
                "to": "iceberg",
                "do": do,
                "park": [park, 1] if park else None,
            }
            script = Script(told, *[{"go": True}] * bool(park))
            worker.Worker(rooms_of(workspace), switch, script).serve()  # type: ignore[arg-type]
            assert [each for each in script.said if "parked" in each] == [{"parked": True}] * bool(park), do
            assert "seconds" in script.said[-1], script.said
            assert dataset.record.route.mode == mode, do
        assert dataset.to_arrow().num_rows == 5
