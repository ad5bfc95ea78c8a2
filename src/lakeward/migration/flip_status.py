"""What is told of a flip: where it stands, its stages, and what each of them did."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakeward.control.flips import FlipEvent
from lakeward.control.parity import ParityCheck
from lakeward.migration.stage import Details
from lakeward.storage.replication import Lag


@dataclass(frozen=True)
class StageState:
    """One stage of a flip: whether it is done, and what it would do now, or what it would take to undo it."""

    name: str
    about: str
    done: bool
    automatic: bool
    actions: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "actions": list(self.actions), "undo": list(self.undo)}


@dataclass(frozen=True)
class FlipStatus:
    """Where the flip of a dataset stands.

    Args:
        dataset, mode, primary, mirror, epoch: the dataset and its route.
        to: where the flip goes; None: the dataset was never flipped.
        outcome: how the newest flip ended; None: it goes on, or there was none.
        owner: the process that works on it.
        lag: how far the arm that does not serve is behind; None: it has no part to play.
        stages: in order.
        events: what happened, oldest first.
        parity: the newest comparison of its arms; None: there was none.
    """

    dataset: str
    mode: str
    primary: str
    mirror: str | None
    epoch: int
    to: str | None = None
    outcome: str | None = None
    started_by: str | None = None
    owner: str | None = None
    lag: Lag | None = None
    stages: tuple[StageState, ...] = ()
    events: tuple[FlipEvent, ...] = ()
    parity: ParityCheck | None = None

    @property
    def next_stage(self) -> str | None:
        """The first stage that is not done; None: no flip goes on, or nothing is left to do."""
        return next((stage.name for stage in self.stages if not stage.done), None)

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            **vars(self),
            "lag": self.lag.to_json() if self.lag is not None else None,
            "stages": [each.to_json() for each in self.stages],
            "events": [each.to_json() for each in self.events],
            "next_stage": self.next_stage,
            "parity": self.parity.to_json() if self.parity is not None else None,
        }


@dataclass(frozen=True)
class Step:
    """What one stage did in this run."""

    stage: str
    details: Details = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {"stage": self.stage, "seconds": round(self.seconds, 3), **self.details}
