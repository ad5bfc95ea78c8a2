"""The judge of flips under load finds readers that saw what was never committed, and says how long writers waited."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakeward.testing.drill.flips import percentile
from lakeward.testing.drill.model import DatasetModel, Log
from lakeward.testing.drill.roles import fingerprint
from lakeward.testing.drill.witness import Readers, Writers
from lakeward.testing.drill.writes import NOTHING, Content, Write

FIRST = Content(((1, "drill 1"), (2, "drill 1")), (0, 1), 2)
SECOND = Content(((1, "drill 1"), (2, "drill 3")), (0, 1), 2)


def journal(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def seen(rows: list[tuple[int, int, str]], at_least: int, at_most: int, since: int | None = None) -> dict[str, Any]:
    counted = {"rows": len(rows), "hash": fingerprint(rows)}
    return {"since": since, "at_least": at_least, "at_most": at_most, **counted}


OF_FIRST = [(0, 1, "drill 1"), (1, 2, "drill 1")]
OF_SECOND = [(1, 2, "drill 3"), (0, 1, "drill 1")]
CHANGED = [(1, 2, "drill 3")]


@pytest.mark.parametrize(
    ("reads", "complaint"),
    [
        ([seen(OF_FIRST, 1, 2), seen(OF_SECOND, 1, 2), seen(CHANGED, 2, 2, since=1)], None),
        ([seen(OF_FIRST, 2, 2)], "2 rows that are of none"),
        ([seen(OF_SECOND, 1, 2), seen(OF_FIRST, 1, 2)], "between versions 2 and 2"),
        ([seen(OF_SECOND[:1], 1, 2)], "1 rows that are of none"),
        ([seen([], 1, 2)], "saw 0 rows"),
        ([seen(OF_SECOND, 2, 2, since=1)], "rows since 1"),
        ([{"error": "UnknownVersion: it is gone"}], "a reader failed: UnknownVersion: it is gone"),
    ],
)
def test_what_readers_saw(tmp_path: Path, reads: list[dict[str, Any]], complaint: str | None) -> None:
    model = DatasetModel(SimpleNamespace(), SimpleNamespace(id=1, name="d"), Log())  # type: ignore[arg-type]
    model.content = {0: NOTHING, 1: FIRST, 2: SECOND}
    found = list(Readers(model).check(journal(tmp_path / "reader", *reads)))
    assert [complaint is not None and complaint in what for what in found] == ([] if complaint is None else [True])


def told(number: int, began: float, opened: float | None, ended: float, answer: str) -> list[dict[str, Any]]:
    write = Write(number, (("d", "append", (number,)),))
    times = {"began": began, "opened": opened, "ended": ended}
    return [{"asked": write.to_json()}, {"label": write.label, "answer": answer, **times}]


def test_what_writers_were_told_and_how_long_they_waited_for_nobody(tmp_path: Path) -> None:
    one = journal(tmp_path / "one", *told(1, 0.0, 0.1, 2.0, "acknowledged"), *told(3, 2.0, 4.5, 5.0, "acknowledged"))
    # Of its 4.4 s until it gave up, another one wrote in 1.9 s and then in 0.4 s.
    two = journal(tmp_path / "two", *told(2, 0.5, None, 4.9, "refused"))
    log = Log()
    writers = Writers([one, two], log)
    assert writers.answers == {"acknowledged": 2, "refused": 1}
    assert set(log.writes) == set(log.answers) == {"drill 1", "drill 2", "drill 3"}
    assert writers.typical_write() == pytest.approx((1.9 + 0.5) / 2)
    assert writers.longest_wait() == pytest.approx(2.5)


def test_percentiles() -> None:
    assert [percentile([3.0, 1.0, 2.0, 4.0], percent) for percent in (1, 50, 75, 99)] == [1.0, 2.0, 3.0, 4.0]
    assert percentile([], 50) == 0.0
