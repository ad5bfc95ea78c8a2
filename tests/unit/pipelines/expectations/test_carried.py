"""What was found in the version before is made use of, and what is kept is what reading every row would give."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import lakeward
from lakeward.control.expectation_results import ExpectationResults
from lakeward.errors import ExpectationFailed
from lakeward.pipelines.expectation import Expectation
from lakeward.pipelines.expectation_spec import expectation_classes
from lakeward.pipelines.judge import Judge
from lakeward.pipelines.known import Extent, Known
from lakeward.pipelines.project import Project
from support.expectations import Scene

EXPECTATIONS = """\
    expectations:
      - row_count: {min: 3, max: 22, on_fail: warn}
      - primary_key: {on_fail: warn}
      - not_null: {columns: [n, status], on_fail: warn}
      - row: {check: "v > 0", at_least: 0.7, on_fail: warn}
      - row: {check: "n < 90", nulls: true}
      - accepted_values: {column: status, values: [new, sent], nulls: false, on_fail: warn}
      - value: {sql: "sum(n)", within_of_previous: 0.2, on_fail: warn}
      - value: {sql: "max(n)", max: 50, on_fail: warn, on_no_data: pass}
      - value: {sql: "count(status)", min: 4, on_fail: warn}
      - value: {sql: "max(v)", within_of_previous: 0.1, on_fail: warn}
"""
STRATEGIES = ("append_always", "snapshot_replace")


def _text(name: str, arm: str) -> str:
    outputs = "".join(
        f"  - dataset: main.{name}.{strategy}\n    from: rows\n    strategy: {strategy}\n    arm: {arm}\n"
        f"    primary_key: [id]\n{EXPECTATIONS}"
        for strategy in STRATEGIES
    )
    return f"pipeline: {name}\nnodes:\n  rows: {{source: main.raw.s}}\noutputs:\n{outputs}"


def _rows(rng: random.Random, ids: list[int]) -> list[dict[str, Any]]:
    return [
        {
            "id": each,
            "n": rng.choice([None, 1, Decimal("2.5"), -3, 50, 60]),
            "v": rng.choice([None, 0.1, 0.2, 0.3, -7.0]),
            "status": rng.choice([None, "new", "sent", "lost"]),
        }
        for each in ids
    ]


def _found(workspace: lakeward.Workspace, name: str) -> list[tuple[Any, ...]]:
    """Return what was found in the newest version of each output that was judged, one by one."""
    store = ExpectationResults(workspace.database)
    return [
        (strategy, judged.version, judged.status, result.to_json())
        for strategy in STRATEGIES
        for judged in store.judged(workspace.dataset(f"main.{name}.{strategy}").record.id, most=1)
        for result in judged.results
    ]


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Makes every judgement read all rows, or lets it do with what it needs."""
    knows, extent = Judge.known, expectation_classes()["row_count"].extent

    def switch(on: bool) -> None:
        nothing = Known(rows=0, before=1, only_adds=False, keyed=False, found=None)
        monkeypatch.setattr(Judge, "known", (lambda *_: nothing) if on else knows)
        monkeypatch.setattr(expectation_classes()["row_count"], "extent", Expectation.extent if on else extent)

    return switch


def test_what_is_kept_is_what_reading_all_rows_would_give(
    workspace: lakeward.Workspace,
    project: Callable[..., Project],
    arm: str,
    whole: Callable[[bool], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extents: set[tuple[str, Extent]] = set()
    of_new = Judge.of_new

    def noted(self: Judge, expectations: Any, known: Any) -> Any:
        extents.update((each.name, Extent.NEW) for each in expectations.values())
        return of_new(self, expectations, known)

    monkeypatch.setattr(Judge, "of_new", noted)
    columns = {"id": "long", "n": "decimal(10,2)", "v": "double", "status": "string"}
    source = workspace.create_dataset("main.raw.s", columns, ["id"], arm=arm)
    workspace.pipelines.apply(project(part_yml=_text("part", arm), whole_yml=_text("whole", arm)))

    def build(name: str, full: bool) -> bool:
        whole(name == "whole")
        try:
            workspace.build(name, full=full)
        except ExpectationFailed:
            return False
        return True

    # Drawn once and for all: not every draw reads each kind by new rows, and a key that `append_always` has twice is
    # refused to whoever writes by key.
    rng = random.Random(11)
    steps = ["append", "by hand", "append", "mixed", "refused", "update", "full", "append"]
    for step in steps:
        ids = {"append": range(20, 40), "update": range(20), "mixed": range(30)}.get(step, range(5, 25))
        batch = _rows(rng, rng.sample(ids, 4))
        if step == "refused":
            source.write([{**row, "n": 95} for row in batch], mode="upsert")
            assert [build(name, False) for name in ("part", "whole")] == [False, False]
            assert _found(workspace, "part") == _found(workspace, "whole"), steps
        elif step == "by hand":
            for name in ("part", "whole"):
                for strategy in STRATEGIES:
                    workspace.dataset(f"main.{name}.{strategy}").write(batch, mode="append_new")
        source.write(batch, mode="upsert")
        assert [build(name, step == "full") for name in ("part", "whole")] == [True, True]
        for part, all_rows in zip(_found(workspace, "part"), _found(workspace, "whole"), strict=True):
            assert part == all_rows, steps
    assert {"primary_key", "not_null", "row", "accepted_values", "value"} == {kind for kind, _ in extents}


def test_a_key_that_an_old_row_has_is_found_without_reading_all_of_them(scene: Scene) -> None:
    """Of the new keys, one comes twice, and two are there: rows with ids like those of others, and beyond them."""
    scene.expect("primary_key: {on_fail: warn}", strategy="append_always")
    scene.build()
    scene.write((4, 4.0, None), (6, 6.0, None))
    scene.build()
    assert scene.outcomes() == {"primary_key": ("passed", 5, 0)}
    scene.write((4, 4.5, None), (5, 5.0, None), (5, 5.5, None), (1, 1.5, None), (7, 7.0, None))
    scene.build()
    assert scene.results()[0].message == "3 of 10 rows have a key that another one has"
    assert scene.results()[0].samples == [{"id": "1"}, {"id": "4"}, {"id": "5"}]
