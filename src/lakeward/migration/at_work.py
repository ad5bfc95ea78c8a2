"""What a process that works on a flip does besides: asks whether the flip is still its own, and notes what failed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lakeward import stopping
from lakeward.control.flips import FlipRecord, Flips
from lakeward.control.leases import Heartbeat
from lakeward.control.texts import storable
from lakeward.errors import LakewardError, LeaseLost

log = logging.getLogger("lakeward.flips")


def checking(heartbeat: Heartbeat, dataset: str) -> Callable[[], None]:
    """Return what raises LeaseLost once the flip of a dataset is another process's, and Stopped once it is to end."""

    def check() -> None:
        stopping.check()
        if not heartbeat.beat():
            raise LeaseLost(
                f"the flip of dataset {dataset} was taken over: this process was silent for too long",
                safe="what is done stands",
                next_step=f"lakeward flip status {dataset}",
                dataset=dataset,
            )

    return check


def note_failure(
    flips: Flips, flip: FlipRecord, stage: str, actor: str, error: Exception, *, seconds: float | None = None
) -> None:
    """Write down that a stage failed. If that fails, too, the error says so: the caller goes on to raise it.

    Args:
        flips: where events are kept.
        flip: whose stage.
        stage: its name.
        actor: who ran it.
        error: what it failed by.
        seconds: how long it took until then.
    """
    try:
        flips.note(flip, stage, "failed", actor, seconds=seconds, details={"error": storable(str(error))})
    except LakewardError as second:
        log.warning("flip %d: that %s failed could not be noted: %s", flip.id, stage, second)
        error.add_note(f"That {stage} failed could not be noted: {second.message}")
