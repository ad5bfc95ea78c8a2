"""Watches both arms of a dataset for a while, as its readers ask them, and says whether the other one may serve.

Readers are set to ask both arms, unless one does so already, and a read of the watch's own comes every second or less
often: it takes a tenth of the time at most. All that they find is in `parity_checks`, so a watch that was cut short
goes on with what was found before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from itertools import count

from lakeward.control.parity import Tally
from lakeward.errors import ConflictError, LakewardError, LeaseLost, ParityMismatch, UsageError
from lakeward.migration.options import Limits
from lakeward.migration.reading import read_both, reads_of
from lakeward.migration.shadowing import STAGE, newest_watch, put_back, shadow, shadowed_by, to_be_shadowed
from lakeward.migration.stage import Details, FlipContext

EVERY_SECONDS = 1.0
SHARE = 0.1
"""The share of the time that the watch's own reads take at most."""


class Watch:
    """One watch over a dataset that is mirrored.

    Args:
        context: the flip.
        limits: what the arms have to keep to.
        actor: who asks, for the log.
    """

    def __init__(self, context: FlipContext, limits: Limits, actor: str) -> None:
        self._context = context
        self._limits = limits
        self._actor = actor

    def run(self) -> Details:
        """Watch, and return what was found. A watch with the same limits that was cut short goes on.

        Raises:
            UsageError: the dataset is not mirrored.
            ParityMismatch: the arms differ.
            ConflictError: the new arm is too slow, or too few reads were compared.
        """
        route = self._context.dataset.route
        if route.mirror_arm is None:
            raise UsageError(
                f"dataset {self._context.dataset.name} is not mirrored (mode {route.mode}): there is nothing to watch",
                safe="nothing was changed",
                next_step=f"lakeward flip start {self._context.dataset.name} --until mirror",
                dataset=self._context.dataset.name,
            )
        since, ours = self._begin(), True
        try:
            tally = self._watch(since)
            told = self._judged(tally)
        except LeaseLost:
            # Whoever has taken over is watching now, or has put the flags back.
            ours = False
            raise
        except LakewardError as error:
            self._note("failed", {"error": str(error)})
            raise
        finally:
            if ours:
                put_back(self._context)
        self._note("done", told)
        return told

    def _begin(self) -> datetime:
        """Return since when it is watched, with the flags of readers set."""
        newest, wanted = newest_watch(self._context), asdict(self._limits)
        events = [each for each in self._context.rooms.flips.events(self._context.flip) if each.stage == STAGE]
        if newest is not None and events[-1] == newest and newest.details["watch"] == wanted:
            shadow(self._context, shadowed_by(newest))
            return newest.at
        put_back(self._context)
        # Before they are set: whoever finds them set knows what was there before.
        self._note("started", {"watch": wanted, "readers": to_be_shadowed(self._context)})
        begun = newest_watch(self._context)
        assert begun is not None, "it was just written down"
        shadow(self._context, shadowed_by(begun))
        return begun.at

    def _watch(self, since: datetime) -> Tally:
        context, clock = self._context, self._context.rooms.clock
        tally = self._tally(since)
        started = clock.monotonic() - tally.elapsed
        for number in count():
            context.check()
            before = clock.monotonic()
            self._read(number)
            took = clock.monotonic() - before
            context.rooms.faults.at("flip:watching")
            tally, elapsed = self._tally(since), clock.monotonic() - started
            context.tell(STAGE, int(min(elapsed, self._limits.seconds)), int(self._limits.seconds))
            if tally.mismatches > self._limits.max_mismatch or elapsed >= self._limits.seconds:
                break
            left = self._limits.seconds - elapsed
            clock.sleep(min(max(EVERY_SECONDS, took * (1 / SHARE - 1)), left))
        return tally

    def _read(self, number: int) -> None:
        """Read from both arms, each time in another way."""
        dataset, direction = self._context.dataset, self._context.direction
        reads = reads_of(self._context.rooms, dataset, direction.other(dataset.route.primary_arm))
        if reads:
            read_both(self._context.rooms, dataset, reads[number % len(reads)], direction.arms)

    def _tally(self, since: datetime) -> Tally:
        rooms, dataset_id = self._context.rooms, self._context.flip.dataset_id
        return rooms.parity.tally(dataset_id, since, self._context.direction.arms)

    def _judged(self, tally: Tally) -> Details:
        """Return what was found, if it keeps to the limits."""
        ratio = _ratio(tally, self._context.direction.arms)
        reasons = list(self._broken(tally, ratio))
        if reasons:
            dataset = self._context.dataset
            kind = ParityMismatch if tally.mismatches > self._limits.max_mismatch else ConflictError
            raise kind(
                f"the canary of dataset {dataset.name} speaks against the {self._context.direction.to} arm: "
                + "; ".join(reasons),
                next_step=f"lakeward flip status {dataset.name}",
                dataset=dataset.name,
                reads=tally.reads,
                mismatches=tally.mismatches,
                latency_ratio=ratio,
            )
        return {"reads": tally.reads, "mismatches": tally.mismatches, "latency_ratio": ratio}

    def _broken(self, tally: Tally, ratio: float | None) -> Iterator[str]:
        limits = self._limits
        if tally.mismatches > limits.max_mismatch:
            yield f"{tally.mismatches:,} comparisons found that the arms differ; {limits.max_mismatch:,} may"
            return
        if tally.reads < limits.min_reads:
            yield f"{tally.reads:,} reads were compared; {limits.min_reads:,} are needed"
        if limits.max_latency_ratio is None:
            return
        if ratio is None:
            yield "how long reads take was not measured on both arms"
        elif ratio > limits.max_latency_ratio:
            yield f"its median read takes {ratio:g} times as long; {limits.max_latency_ratio:g} is the most"

    def _note(self, event: str, details: Details) -> None:
        self._context.rooms.flips.note(self._context.flip, STAGE, event, self._actor, details=details)


def _ratio(tally: Tally, arms: tuple[str, str]) -> float | None:
    old, new = (tally.seconds.get(arm) for arm in arms)
    return round(new / old, 2) if old and new is not None else None
