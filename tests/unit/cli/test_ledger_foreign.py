"""`lakeward ledger adopt` and `restore`: what they print, ask for, and change."""

from __future__ import annotations

import io
import sys

import pytest

import lakeward
from support.commands import Run
from support.other_engine import OtherEngine

NAME = "main.sales.orders"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def other(opened: lakeward.Workspace) -> OtherEngine:
    dataset = opened.create_dataset(NAME, {"id": "long", "note": "string"}, ["id"], arm="iceberg")
    dataset.write([{"id": number, "note": f"note {number}"} for number in (1, 2, 3)])
    return OtherEngine(opened, dataset)


def diverge(opened: lakeward.Workspace) -> None:
    with pytest.raises(lakeward.errors.Diverged):
        opened.dataset(NAME).write([{"id": 99, "note": None}])


def test_status_and_errors_name_both_ways_out(run: Run, opened: lakeward.Workspace, other: OtherEngine) -> None:
    other.delete("id = 2")
    diverge(opened)
    status = run("status", "--output", "json").document
    assert status["diverged"] == [NAME]
    assert status["next_steps"] == [f"lakeward ledger {way} {NAME} --dry-run" for way in ("adopt", "restore")]
    copied = run("dataset", "copy", NAME, "--to", "postgres")
    assert copied.code == 6
    assert f"lakeward ledger adopt {NAME}" in copied.err
    assert f"lakeward ledger restore {NAME}" in copied.err


def test_nothing_to_do(run: Run, opened: lakeward.Workspace, other: OtherEngine) -> None:
    adopted = run("ledger", "adopt", NAME, "--output", "json")
    assert (adopted.code, adopted.document["committed"], adopted.document["version"]) == (0, False, 1)
    restored = run("ledger", "restore", NAME)
    assert (restored.code, restored.out) == (0, f"the table of {NAME} is at version 1 already: nothing to restore\n")
    for way in ("adopt", "restore"):
        assert run("ledger", way, NAME, "--dry-run").out == "nothing to do\n"
    assert opened.dataset(NAME).version == 1


def test_adopt(run: Run, opened: lakeward.Workspace, other: OtherEngine) -> None:
    snapshot = other.delete("id = 2")
    dry = run("ledger", "adopt", NAME, "--dry-run", "--output", "json")
    assert dry.code == 0
    assert dry.document["actions"] == [
        f"take snapshot {snapshot} of {NAME} with 2 rows: 0 added, 0 updated, 2 unchanged; 1 deleted",
        f"commit a new version of {NAME} after version 1, and allow writes again",
    ]
    assert opened.dataset(NAME).version == 1
    wrong = run("ledger", "adopt", NAME, "--snapshot", "1")
    assert wrong.code == 6
    done = run("ledger", "adopt", NAME, "--snapshot", str(snapshot))
    assert done.code == 0
    assert f"{NAME} is at version 2 with 2 rows: 0 added, 0 updated, 1 deleted, 2 unchanged" in done.out
    assert "adopt" in run("dataset", "history", NAME).out


def test_adopt_that_needs_renumbering(run: Run, opened: lakeward.Workspace, other: OtherEngine) -> None:
    other.append({"id": 4})
    dry = run("ledger", "adopt", NAME, "--dry-run").out
    assert "refuse:" in dry
    assert "1 rows with another row's __row_id; --renumber gives those rows a fresh identity" in dry
    refused = run("ledger", "adopt", NAME)
    assert (refused.code, opened.dataset(NAME).version) == (1, 1)
    assert "--renumber" in refused.err
    actions = run("ledger", "adopt", NAME, "--renumber", "--dry-run", "--output", "json").document["actions"]
    assert actions[1].startswith("write them anew, with a sound identity for 1 rows")
    done = run("ledger", "adopt", NAME, "--renumber", "--output", "json").document
    assert (done["verb"], done["rows_added"], done["row_count"]) == ("renumber", 1, 4)


def test_dry_run_says_what_reading_since_would_miss(run: Run, opened: lakeward.Workspace, other: OtherEngine) -> None:
    other.rewrite(lambda found: [{**found[0], "note": "changed"}, *found[1:]])
    assert "reading since version 1 misses them" in run("ledger", "adopt", NAME, "--dry-run").out


def test_restore_wants_the_name_typed(
    run: Run, opened: lakeward.Workspace, other: OtherEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, foreign = other.main, other.append({"id": 4})
    dry = run("ledger", "restore", NAME, "--dry-run").out
    assert f"from snapshot {foreign} to {ours}, our version 1" in dry
    assert f"under the tag foreign-{foreign}" in dry
    nobody = run("ledger", "restore", NAME)
    assert (nobody.code, other.main) == (2, foreign)
    assert "--yes" in nobody.err
    monkeypatch.setattr(sys, "stdin", Terminal("something else\n"))
    assert run("ledger", "restore", NAME).code == 2
    assert other.main == foreign
    monkeypatch.setattr(sys, "stdin", Terminal(f"{NAME}\n"))
    done = run("ledger", "restore", NAME)
    assert (done.code, other.main) == (0, ours)
    assert f"stays under the tag foreign-{foreign}" in done.out


def test_restore_with_yes(run: Run, opened: lakeward.Workspace, other: OtherEngine) -> None:
    ours, foreign = other.main, other.append({"id": 4})
    diverge(opened)
    assert run("ledger", "restore", NAME, "--yes", "--snapshot", str(ours)).code == 6
    done = run("ledger", "restore", NAME, "--yes", "--output", "json").document
    assert (done["done"], done["snapshot"], done["kept"], done["version"]) == (True, ours, foreign, 1)
    assert opened.dataset(NAME).status().status == "ok"


def test_restore_after_somebody_set_main_back(run: Run, opened: lakeward.Workspace, other: OtherEngine) -> None:
    ours = other.main
    other.append({"id": 4})
    diverge(opened)
    other.set_main(ours)
    assert "allow writes again" in run("ledger", "restore", NAME, "--dry-run").out
    assert run("ledger", "restore", NAME).code == 0
    assert opened.dataset(NAME).status().status == "ok"
