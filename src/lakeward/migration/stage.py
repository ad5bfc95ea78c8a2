"""What a stage of a flip does. To add one, add a file to `stages/`; its docstring is its help.

Whether a stage is done is read from the route and the ledger wherever they tell it, and not from what the flip wrote
down: so a flip that was killed goes on from where things stand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lakeward.clock import Clock, Faults
from lakeward.control.flags.store import FlagTable
from lakeward.control.flips import FlipRecord, Flips
from lakeward.control.ignore_rules import IgnoreRules
from lakeward.control.parity import ParityChecks
from lakeward.control.records import OpenTransaction
from lakeward.control.routes import Route
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.migration.directions import Direction
from lakeward.migration.options import Options
from lakeward.storage.facade import Storage
from lakeward.storage.finding import Finder
from lakeward.storage.replication import Replication

Details = dict[str, object]
"""What a stage tells of what it did: plain values, for the log and `--output json`."""


@dataclass(frozen=True)
class Rooms:
    """The parts of a workspace that stages work with."""

    tree: Tree
    storage: Storage
    replication: Replication
    flips: Flips
    parity: ParityChecks
    clock: Clock
    faults: Faults
    finder: Finder
    ignore_rules: IgnoreRules
    flags: FlagTable


@dataclass(frozen=True)
class FlipContext:
    """One flip at work.

    Args:
        flip: which one.
        direction: where it goes.
        options: how it is carried out.
        tell: is told how many rows a stage has dealt with, and of how many.
        check: asks the control plane, and raises if the flip is another process's now.
    """

    flip: FlipRecord
    direction: Direction
    rooms: Rooms
    options: Options = field(default_factory=Options)
    tell: Callable[[str, int, int | None], None] = lambda _stage, _rows, _total: None
    check: Callable[[], None] = lambda: None

    @property
    def dataset(self) -> DatasetRecord:
        """The dataset as it is now."""
        return self.rooms.tree.by_id(self.flip.dataset_id)

    def reroute(
        self, mode: str, writer: str, checked: Callable[[OpenTransaction], None] = lambda _opened: None
    ) -> Route:
        """Change the route between two writes, if the flip is still this process's at that moment.

        An owner that was paused, and wakes up when others have gone on, so changes nothing.

        Args:
            mode, writer, checked: see `Replication.reroute`.

        Raises:
            LeaseLost: another process works on the flip.
        """

        def ours(opened: OpenTransaction) -> None:
            self.check()
            checked(opened)

        return self.rooms.replication.reroute(self.dataset, mode, writer=writer, checked=ours)

    def noted(self, stage: str) -> bool:
        """Say whether the newest thing that happened to a stage is that it was done."""
        events = [each for each in self.rooms.flips.events(self.flip) if each.stage == stage]
        return bool(events) and events[-1].event == "done"

    def details(self, stage: str) -> Mapping[str, object]:
        """Return what the stage told when it was done last; nothing if it was not."""
        events = [each for each in self.rooms.flips.events(self.flip) if (each.stage, each.event) == (stage, "done")]
        return events[-1].details if events else {}


class Stage(ABC):
    """One stage of a flip. All that it does can be repeated, and be cut short anywhere."""

    name: ClassVar[str]
    position: ClassVar[int]
    """Stages run in ascending order of it."""

    automatic: ClassVar[bool] = True
    """Whether `flip start` runs it; if not, somebody has to ask for it."""

    @abstractmethod
    def explain(self, context: FlipContext) -> list[str]:
        """Return what `run` would do now, each action literally, in order. Changes nothing."""

    @abstractmethod
    def done(self, context: FlipContext) -> bool:
        """Say whether there is nothing to do."""

    @abstractmethod
    def run(self, context: FlipContext) -> Details:
        """Do it.

        Raises:
            LakewardError: it can't be done now; what is there before it stands.
        """

    @abstractmethod
    def undo(self, context: FlipContext) -> list[str]:
        """Take back what `run` did, and return what that was. Repeating it does nothing more."""

    def explain_undo(self, context: FlipContext) -> list[str]:
        """Return what `undo` would do once all later stages are undone. Changes nothing."""
        return []
