"""Flips under load: processes write and read one dataset while it is flipped, reverted and completed, with kills.

The process that works on the flip is killed at random instants, and another one goes on where it was. In the end both
arms must hold what the journals of the writers say, and each reader must have seen committed versions only.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakeward.testing.drill.model import Log, Model, Rooms
from lakeward.testing.drill.processes import Nursery, Writer
from lakeward.testing.drill.witness import Readers, Writers, lines

GOES_ON = ("revert", "switch", "revert", "cancel", "switch", "complete", "back", "switch")
"""What is done with the flip over and over until the time is up; `back` is the flip that takes the place of a revert
when one was completed, and its end."""

KILLED_AT: Mapping[str, tuple[str, ...]] = {"complete": ("flip:final", "maintain:rows", "flip:complete:ran")}
"""Steps at which the process is killed, one time each, whenever that is done; else it is killed at random instants."""

MOST_KILLS = 2
MOST_TRIES = 30

ARMS = ("postgres", "iceberg")


@dataclass(frozen=True)
class Load:
    """What goes on meanwhile, and what is done at least.

    Args:
        writers, readers: how many processes of each.
        killed_in: the share of tries that end by a kill, as long as `MOST_KILLS` of one thing have not been killed.
        at_least: what is done with the flip, however long it takes; ends with a switch, as `GOES_ON` does.
    """

    writers: int = 4
    readers: int = 4
    killed_in: float = 0.5
    at_least: tuple[str, ...] = ("switch", "revert", "switch")


@dataclass
class FlipsUnderLoad:
    """What happened. Times are in seconds; those of switches and reverts are of the ones that were not killed."""

    load: Load
    seconds: float = 0.0
    writes: Mapping[str, int] = field(default_factory=dict)
    reads: int = 0
    kills: int = 0
    tries_again: int = 0
    done: list[str] = field(default_factory=list)
    switch: list[float] = field(default_factory=list)
    revert: list[float] = field(default_factory=list)
    typical_write: float = 0.0
    longest_wait: float = 0.0
    violations: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        times = {name: {"p50": percentile(each, 50), "p99": percentile(each, 99)} for name, each in self._times.items()}
        return {**vars(self), "load": vars(self.load), "writes": dict(self.writes), **times}

    @property
    def _times(self) -> dict[str, list[float]]:
        return {"switch": self.switch, "revert": self.revert}

    def told(self) -> str:
        """Return it as a sentence."""
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self.writes.items()))
        times = "; ".join(
            f"{name} p50 {percentile(each, 50) * 1000:.0f} ms, p99 {percentile(each, 99) * 1000:.0f} ms of {len(each)}"
            for name, each in self._times.items()
            if each
        )
        done = ", ".join(f"{count} {what}" for what, count in sorted(Counter(self.done).items()))
        return (
            f"flips under load, {self.seconds:.0f} s, {self.load.writers} writers, {self.load.readers} readers: "
            f"{counts} writes, {self.reads} reads; done: {done}; {self.kills} kills; {times}; a write p50 "
            f"{self.typical_write * 1000:.0f} ms; a writer waited at most {self.longest_wait:.2f} s "
            f"while none wrote; {len(self.violations)} violations"
        )


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest of the values that so many percent are no greater than; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0.0


class FlipDrill:
    """Flips one dataset under load.

    Args:
        rooms: the workspace, seen by the process that survives.
        nursery: makes the processes that don't.
        name: the dataset, new and on the Postgres arm.
        directory: for journals; empty.
        seed: what is written, and when kills come; not how the processes interleave.
        load: what goes on.
    """

    def __init__(
        self, rooms: Rooms, nursery: Nursery, name: str, directory: Path, seed: int, load: Load | None = None
    ) -> None:
        self._load = load or Load()
        self._nursery = nursery
        self._rooms = rooms
        self._name = name
        self._generator = random.Random(seed)
        self._log = Log()
        self._model = Model(rooms, self._log, [rooms.tree.dataset(name)])
        self._writers = [directory / f"writer_{number}" for number in range(self._load.writers)]
        self._readers = [directory / f"reader_{number}" for number in range(self._load.readers)]
        self._typical = dict.fromkeys(GOES_ON, 0.3)
        self._found = FlipsUnderLoad(self._load)

    def run(self, seconds: float, tell: Callable[[int], None]) -> FlipsUnderLoad:
        """Flip for so many seconds, and at least what the load says; then compare.

        Args:
            seconds: how long.
            tell: is told how many seconds of them have passed.
        """
        began = time.monotonic()
        busy = [self._started("write", each, place) for place, each in enumerate(self._writers)]
        busy += [self._started("read", each, place) for place, each in enumerate(self._readers)]
        flipper = self._nursery.writer()
        for number, do in enumerate(itertools.chain(self._load.at_least, itertools.cycle(GOES_ON)), start=1):
            flipper = self._one(flipper, do)
            passed = time.monotonic() - began
            tell(min(round(passed), round(seconds)))
            enough = number >= len(self._load.at_least) and passed >= seconds
            if self._found.violations or (enough and do == "switch"):
                break
        for process in busy:
            process.tell({"stop": True})
        for process in busy:
            process.answer()
        self._found.seconds = time.monotonic() - began
        self._check()
        return self._found

    def _started(self, role: str, journal: Path, place: int) -> Writer:
        journal.touch()
        process = self._nursery.writer()
        numbers = {"first": place + 1, "step": self._load.writers, "seed": self._generator.randrange(2**31)}
        process.tell({"role": role, "dataset": self._name, "journal": str(journal), **numbers})
        return process

    def _one(self, flipper: Writer, do: str) -> Writer:
        """Let one thing be done with the flip, whoever is killed at it; return the process that did it."""
        kills, steps = 0, list(KILLED_AT.get(do, ()))
        for _ in range(MOST_TRIES):
            park = (steps.pop(0), 1) if steps else None
            flipper.tell({"role": "flip", "dataset": self._name, "to": "iceberg", "do": do, "park": park})
            if park is None and kills < MOST_KILLS and self._generator.random() < self._load.killed_in:
                answer = flipper.answer(self._generator.uniform(0, 1.2 * self._typical[do]))
            else:
                answer = flipper.answer()
            if answer is None or "parked" in answer:
                flipper.kill()
                flipper = self._nursery.replace(flipper)
                kills += 1
                self._found.kills += 1
            elif "again" in answer:
                self._found.tries_again += 1
            elif "failed" in answer:
                self._found.violations.append(str(answer["failed"]))
                return flipper
            else:
                if park is not None:
                    self._found.violations.append(f"{do} was done without {park[0]}")
                self._note(do, answer["seconds"], answer["stages"])
                return flipper
        self._found.violations.append(f"{do} was not done after {MOST_TRIES} tries")
        return flipper

    def _note(self, do: str, seconds: float, stages: Mapping[str, float]) -> None:
        self._found.done.append(do)
        self._typical[do] = seconds
        if "switch" in stages:
            self._found.switch.append(stages["switch"])
        if do == "revert":
            self._found.revert.append(seconds)

    def _check(self) -> None:
        found, dataset = self._found, self._model.datasets[self._name]
        self._rooms.recovery.recover(dataset.id)
        writers = Writers(self._writers, self._log)
        found.writes = writers.answers
        found.typical_write, found.longest_wait = writers.typical_write(), writers.longest_wait()
        found.violations += dataset.follow()
        if found.violations:
            return
        found.violations += dataset.check_arms(ARMS)
        found.violations += self._model.answers({self._name})
        readers = Readers(dataset)
        for journal in self._readers:
            found.reads += len(lines(journal))
            found.violations += readers.check(journal)
        busy = found.writes.get("acknowledged", 0) and (found.reads or not self._readers)
        found.violations += [] if busy else ["nothing was written or read"]
