"""The matrix: one fault at every step of a write, on each arm and on both together, and what became of the write.

A process reports that it has reached the step and waits there; then it is killed, stopped for longer than its lease,
made to raise, or loses Postgres. Several cases are under way at once, each on datasets of its own: most of their time
is spent waiting for a lease to run out.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakeward.storage.protocol import COMMITTED_FROM, POINTS
from lakeward.storage.recovery import Recovered
from lakeward.testing.drill.model import Model, Rooms
from lakeward.testing.drill.processes import Nursery, Writer
from lakeward.testing.drill.writes import Chooser, Write

FAULTS = ("kill -9", "SIGSTOP", "exception", "Postgres down")
"""What happens at a step. The last one only where the server is the drill's own."""

ARMS: Mapping[str, tuple[str, ...]] = {
    "postgres": ("postgres",),
    "iceberg": ("iceberg",),
    "both": ("postgres", "iceberg"),
}
"""The outputs of a case's write, by the name that the table gives them."""

MODES = ("append", "replace", "upsert", "mirror", "changes")
"""The modes that pass through different statements or files. What the others do is part of one of these."""

LANES = 6
"""So many cases are under way at once."""

IN_TRANSACTION = ("prepare:copy",)
"""Steps within a Postgres transaction: nobody can take over from whoever is stopped there, until it goes on."""

DOWN_SECONDS = 0.3
"""How long a write goes on against a Postgres that is down."""

Pairs = Sequence[tuple[str, int]]


class Outage(Protocol):
    """A Postgres server that can be taken away."""

    def stop(self) -> None:
        """Stop it under its users."""

    def start(self) -> None:
        """Start it again."""


@dataclass(frozen=True)
class Case:
    """One cell of the matrix: which fault, in what write, at which step and time of reaching it."""

    fault: str
    arm: str
    mode: str
    step: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.fault} at {self.step} ({self.occurrence}) of {self.mode} on {self.arm}"


@dataclass(frozen=True)
class Outcome:
    """What became of a case's write: `committed` or `unchanged`; and what should not have been."""

    case: Case
    result: str
    answer: str
    violations: tuple[str, ...]


@dataclass
class _Lane:
    """One dataset per arm, and the process that writes to them."""

    names: Mapping[str, str]
    writer: Writer
    chooser: Chooser


class Matrix:
    """Runs cases and checks each against the model.

    Args:
        rooms: the workspace, seen by the process that survives.
        nursery: makes the processes that don't.
        model: has the lanes' datasets.
        lanes: for each lane the names of its datasets, by arm.
        numbers: numbers writes and rows.
        outage: takes Postgres away; None: it is not ours.
        lease_seconds: of the processes.
        generator: settles what is left open.
    """

    def __init__(
        self,
        rooms: Rooms,
        nursery: Nursery,
        model: Model,
        lanes: Sequence[Mapping[str, str]],
        numbers: Iterator[int],
        *,
        outage: Outage | None,
        lease_seconds: float,
        generator: random.Random,
    ) -> None:
        self._rooms = rooms
        self._nursery = nursery
        self._model = model
        self._lanes = [_Lane(names, nursery.writer(), Chooser(numbers)) for names in lanes]
        self._other = nursery.writer()
        self._outage = outage
        self._lease_seconds = lease_seconds
        self._generator = generator

    def cases(self) -> list[Case]:
        """Return every case there is, from the steps that a write really passes."""
        faults = [fault for fault in FAULTS if fault != FAULTS[-1] or self._outage is not None]
        return [
            Case(fault, arm, mode, step, occurrence)
            for fault, ((arm, mode), steps) in itertools.product(faults, self._steps().items())
            for step, occurrence in steps
        ]

    def run(self, cases: Iterable[Case], tell: Callable[[int], None]) -> Iterator[Outcome]:
        """Run cases, those of one fault together.

        Args:
            cases: which.
            tell: is told how many are done.
        """
        done = 0
        for fault, group in itertools.groupby(sorted(cases, key=lambda case: FAULTS.index(case.fault)), _fault):
            for batch in _batches(list(group), len(self._lanes)):
                yield from self._batch(fault, batch)
                done += len(batch)
                tell(done)

    def _steps(self) -> dict[tuple[str, str], Pairs]:
        """Let one write of each kind run undisturbed, and return the steps that it passes."""
        lane = self._lanes[0]
        found: dict[tuple[str, str], Pairs] = {}
        for arm, mode in itertools.product(ARMS, MODES):
            lane.writer.start(self._write(lane, arm, mode))
            answer = lane.writer.answer() or {}
            seen: list[str] = answer.get("steps", [])
            # A step comes once for each output: 1, 2.
            found[arm, mode] = [(step, seen[: place + 1].count(step)) for place, step in enumerate(seen)]
            unknown = sorted(set(seen) - set(POINTS))
            assert seen and not unknown, f"{mode} on {arm}: {answer}; POINTS does not know {unknown}"
        return found

    def _write(self, lane: _Lane, arm: str, mode: str) -> Write:
        lane.chooser.settled()
        return lane.chooser.write(self._generator, [(lane.names[each], mode) for each in ARMS[arm]])

    def _batch(self, fault: str, cases: Sequence[Case]) -> Iterator[Outcome]:
        lanes = self._lanes[: len(cases)]
        writes = [self._write(lane, case.arm, case.mode) for lane, case in zip(lanes, cases, strict=True)]
        trouble: list[list[str]] = [[] for _ in cases]
        for lane, case, write in zip(lanes, cases, writes, strict=True):
            lane.writer.start(write, (case.step, case.occurrence))
        for lane, found in zip(lanes, trouble, strict=True):
            if not (lane.writer.answer() or {}).get("parked"):
                found.append("the write never came to this step")
        {
            "kill -9": self._kill,
            "SIGSTOP": self._pause,
            "exception": self._raise,
            "Postgres down": self._cut_off,
        }[fault](lanes, cases)
        for lane, case, write, found in zip(lanes, cases, writes, trouble, strict=True):
            self._recover(lane, case.arm)
            names = [lane.names[arm] for arm in ARMS[case.arm]]
            again = [each for name in names for each in self._recover_one(name)]
            found += [f"a second recovery still {each.outcome} {each.dataset}" for each in again]
            found += self._model.check(self._generator, names)
            answer = self._model.log.answers.get(write.label, "killed")
            result = "committed" if all(self._model.committed(write)) else "unchanged"
            found += _unexpected(case, result, answer, lane.writer.error)
            yield Outcome(case, result, answer, tuple(f"{case}: {what}" for what in found))
            if not lane.writer.alive:
                lane.writer = self._nursery.replace(lane.writer)

    # Faults ----------------------------------------------------------------------------------------------------------

    def _kill(self, lanes: Sequence[_Lane], cases: Sequence[Case]) -> None:
        for lane in lanes:
            lane.writer.kill()
        self._somebody_else(lanes, cases)

    def _pause(self, lanes: Sequence[_Lane], cases: Sequence[Case]) -> None:
        for lane in lanes:
            lane.writer.stop()
        time.sleep(self._lease_seconds + 0.2)
        self._somebody_else(lanes, cases)
        for lane in lanes:
            lane.writer.wake()
            lane.writer.go()
        for lane in lanes:
            lane.writer.answer()

    def _raise(self, lanes: Sequence[_Lane], cases: Sequence[Case]) -> None:
        for lane in lanes:
            lane.writer.go(on=False)
            lane.writer.answer()

    def _cut_off(self, lanes: Sequence[_Lane], cases: Sequence[Case]) -> None:
        assert self._outage is not None
        self._outage.stop()
        for lane in lanes:
            lane.writer.go()
        time.sleep(DOWN_SECONDS)
        self._outage.start()
        for lane in lanes:
            lane.writer.answer()
        # Whoever could not tell the ledger that it gave up is alive, so its lease has to run out.
        time.sleep(self._lease_seconds + 0.2)

    def _somebody_else(self, lanes: Sequence[_Lane], cases: Sequence[Case]) -> None:
        """Let recovery run: on request for every other case, and for the rest by the next writer who comes along."""
        for position, (lane, case) in enumerate(zip(lanes, cases, strict=True)):
            if position % 2 and not (case.fault == "SIGSTOP" and case.step in IN_TRANSACTION):
                self._other.start(self._write(lane, case.arm, "append"))
                self._other.answer()
            else:
                self._recover(lane, case.arm)

    def _recover(self, lane: _Lane, arm: str) -> None:
        for each in ARMS[arm]:
            self._recover_one(lane.names[each])

    def _recover_one(self, name: str) -> list[Recovered]:
        return self._rooms.recovery.recover(self._model.datasets[name].id)


def _fault(case: Case) -> str:
    return case.fault


def _batches(cases: Sequence[Case], size: int) -> Iterator[Sequence[Case]]:
    return (cases[start : start + size] for start in range(0, len(cases), size))


def _unexpected(case: Case, result: str, answer: str, error: str) -> Iterator[str]:
    """Yield in what the outcome is not the one that the step and the fault allow."""
    stands = POINTS.index(case.step) >= POINTS.index(COMMITTED_FROM)
    first = (case.step, case.occurrence) == (POINTS[0], 1)
    if case.fault in ("kill -9", "exception"):
        wanted = "committed" if stands else "unchanged"
        told = "killed" if case.fault == "kill -9" else "failed"
    elif case.fault == "SIGSTOP":
        # Before it held anything, a paused process has missed nothing: it opens its transaction when it wakes.
        wanted, told = ("committed", "acknowledged") if stands or first else ("unchanged", "refused")
    else:
        # Whoever finds Postgres back in time goes on. Afterwards the answer has to be true, which the model checks.
        wanted, told = ("committed" if stands else result), answer
    if result != wanted:
        yield f"the write is {result}, it must be {wanted} ({answer}: {error})"
    if answer != told:
        yield f"its writer was told {answer} ({error}), it must be {told}"
