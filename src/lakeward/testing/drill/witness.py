"""Judges, from the journals of the drill of flips, whether each writer and reader was told the truth."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from lakeward.testing.drill.model import DatasetModel, Log
from lakeward.testing.drill.roles import Placed, fingerprint
from lakeward.testing.drill.writes import Write

Line = Mapping[str, Any]


def lines(journal: Path) -> list[Line]:
    """Return the lines of a journal."""
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


class Writers:
    """What the writers did, from their journals.

    Args:
        journals: one per writer.
        log: is told every write and answer.
    """

    def __init__(self, journals: Iterable[Path], log: Log) -> None:
        self._told = []
        for line in (each for journal in journals for each in lines(journal)):
            if "asked" in line:
                log.asked(Write.from_json(line["asked"]))
                continue
            self._told.append(line)
            log.answers[line["label"]] = line["answer"]
            log.nothing[line["label"]] = line.get("nothing", {})

    @property
    def answers(self) -> Counter[str]:
        """How many writes got which answer."""
        return Counter(line["answer"] for line in self._told)

    @property
    def refusals(self) -> list[str]:
        """What those were told whose write was not done."""
        return [line["error"] for line in self._told if "error" in line]

    def typical_write(self) -> float:
        """Return the median time in seconds that a write took from its turn to its end."""
        own = [line["ended"] - line["opened"] for line in self._told if line["opened"] is not None]
        return median(own) if own else 0.0

    def longest_wait(self) -> float:
        """Return the longest time in seconds that a writer waited while none of them wrote."""
        held = sorted((line["opened"], line["ended"]) for line in self._told if line["opened"] is not None)
        waits = ((line["began"], line["ended"] if line["opened"] is None else line["opened"]) for line in self._told)
        return max((end - began - _overlap(held, began, end) for began, end in waits), default=0.0)


def _overlap(spans: Sequence[tuple[float, float]], began: float, ended: float) -> float:
    """Return for how many seconds from `began` to `ended` any of the spans lasts; they are in order."""
    total, reached = 0.0, began
    for start, end in spans[: bisect_left(spans, (ended,))]:
        total += max(0.0, min(end, ended) - max(start, reached))
        reached = max(reached, end)
    return total


class Readers:
    """Compares what readers saw with the versions that there were at that time.

    Args:
        model: has followed the dataset to its head.
    """

    def __init__(self, model: DatasetModel) -> None:
        self._model = model
        self._versions = sorted(model.content)
        self._known: dict[tuple[int | None, int], str] = {}

    def check(self, journal: Path) -> Iterator[str]:
        """Yield what one reader can't have seen of committed versions, each at least as new as the one before."""
        last = 0
        for line in lines(journal):
            if "error" in line:
                yield f"a reader failed: {line['error']}"
                continue
            first = max(last, line["at_least"])
            there = self._versions[bisect_left(self._versions, first) : bisect_right(self._versions, line["at_most"])]
            found = next((each for each in there if self._fingerprint(line["since"], each) == line["hash"]), None)
            if found is None:
                what = "all rows" if line["since"] is None else f"rows since {line['since']}"
                yield (
                    f"a reader asked for {what} between versions {first} and {line['at_most']}, and saw {line['rows']} "
                    f"rows that are of none of them"
                )
            else:
                last = found

    def _fingerprint(self, since: int | None, version: int) -> str:
        key = (since, version)
        if key not in self._known:
            rows = self._rows(version)
            self._known[key] = fingerprint(rows if since is None else rows - self._rows(since))
        return self._known[key]

    def _rows(self, version: int) -> set[Placed]:
        content = self._model.content[version]
        return {(place, *row) for place, row in zip(content.places, content.rows, strict=True)}
