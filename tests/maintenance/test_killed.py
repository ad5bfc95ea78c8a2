"""Maintenance is killed at each of its steps, or done by ten processes at once: no readable version is ever harmed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.crashes import Driver
from support.past import GRACE, Past

MakePast = Callable[..., Past]
HISTORY = ("append", "append", "replace", "append", "append", "replace", "append")
STEPS = {
    "postgres": ("maintain:expired", "maintain:rows", "maintain:tidied"),
    "iceberg": ("maintain:expired", "maintain:snapshots", "maintain:file", "maintain:tidied"),
}
CASES = [(arm, step, time) for arm, steps in STEPS.items() for step in steps for time in (1, 2)]


@pytest.mark.parametrize(("arm", "step", "time"), CASES)
def test_killed_at_a_step_the_next_one_goes_on(
    past: MakePast, driver: Driver, kept_root: Path, arm: str, step: str, time: int
) -> None:
    subject = past(arm, *HISTORY)
    settings = {"settings": str(kept_root / "lakeward.toml"), "older_than": GRACE}
    if step in ("maintain:rows", "maintain:file"):
        subject.maintain()
    subject.grow_old()
    died = driver.run(maintain=[subject.name], fault=["crash", step, time], **settings)
    # Expiring, and removing snapshots, come once in a run.
    assert died.killed() == (time == 1 or step not in ("maintain:expired", "maintain:snapshots"))
    subject.assert_readable([5, 6, 7])
    subject.grow_old()
    assert driver.run(maintain=[subject.name], **settings).answer()["failures"] == []
    subject.grow_old()
    subject.maintain()
    subject.assert_readable([5, 6, 7])
    assert subject.maintain().removed == []
    subject.grow("append")
    assert subject.dataset.verify().equal and subject.dataset.row_count == 12


@pytest.mark.parametrize("arm", STEPS)
def test_ten_processes_at_once(past: MakePast, driver: Driver, kept_root: Path, arm: str) -> None:
    """Each thing is removed by one of them, while others write and read."""
    subject = past(arm, *HISTORY)
    settings = {"settings": str(kept_root / "lakeward.toml")}
    subject.maintain()
    subject.grow_old()
    cases = [{"maintain": [subject.name], "older_than": GRACE, **settings} for _ in range(10)]
    cases.insert(5, {"write": [[subject.name, "append", 500, 3, "meanwhile"]], **settings})
    answers = [case.answer() for case in driver.run_together(cases)]
    assert answers.pop(5) == {"versions": [8]}
    assert [answer["failures"] for answer in answers] == [[]] * 10
    removed = [
        (each["kind"], each["what"]) for answer in answers for each in answer["removed"] if each["kind"] != "snapshot"
    ]
    if arm == "iceberg":
        assert len(removed) == len(set(removed)) and any(kind == "data file" for kind, _ in removed)
    else:
        rows = sum(each["count"] for answer in answers for each in answer["removed"] if each["kind"] == "rows")
        assert rows == 8, "those of versions 1 and 2"
    assert subject.dataset.to_arrow().num_rows == 11
    subject.maintain()
    subject.assert_readable([6, 7])
    assert subject.maintain().removed == []
