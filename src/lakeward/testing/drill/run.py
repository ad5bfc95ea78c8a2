"""Runs the drill in an open workspace: makes its datasets, runs the matrix, random rounds and flips, and reports."""

from __future__ import annotations

import itertools
import random
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakeward.testing.drill.flips import FlipDrill, FlipsUnderLoad
from lakeward.testing.drill.matrix import ARMS, LANES, Matrix, Outage, Outcome
from lakeward.testing.drill.model import Log, Model, Rooms
from lakeward.testing.drill.processes import Nursery, Stuck
from lakeward.testing.drill.rounds import Round, Rounds
from lakeward.testing.drill.writes import COLUMNS, PRIMARY_KEY
from lakeward.types.schema import Schema

LEASE_SECONDS = 2.0
"""Of the drill's processes: short, because for every stopped one it has to run out."""

LASTING_ARMS = ARMS["both"]


@dataclass(frozen=True)
class Plan:
    """What is drilled.

    Args:
        rounds: how many random rounds.
        seed: replays what is left to chance.
        cases: at most so many cases of the matrix, chosen by the seed; None: all of them.
        flip_seconds: for so long a dataset is flipped under load; 0: not at all.
    """

    rounds: int
    seed: int
    cases: int | None = None
    flip_seconds: int = 0


@dataclass
class Report:
    """What came of it."""

    plan: Plan
    catalog: str
    datasets: tuple[str, ...]
    outcomes: list[Outcome] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    flips: FlipsUnderLoad | None = None
    stuck: str | None = None

    @property
    def violations(self) -> list[str]:
        """Every promise that was broken, in words; none, if all is well."""
        found = [what for outcome in self.outcomes for what in outcome.violations]
        found += [what for each in self.rounds for what in each.violations]
        found += self.flips.violations if self.flips is not None else []
        return found + ([self.stuck] if self.stuck is not None else [])


@dataclass(frozen=True)
class Ground:
    """Where the drill takes place.

    Args:
        rooms: the workspace, open in this process.
        module: the program that forks workers (see `worker.fork_workers`).
        place: describes the workspace to them.
        outage: takes Postgres away; None where the server is not the drill's own.
    """

    rooms: Rooms
    module: str
    place: Mapping[str, object]
    outage: Outage | None


Tell = Callable[[str, int, int, str], None]
"""Is told what is under way, how much of it is done, of how much, and what is counted."""


def run(plan: Plan, ground: Ground, tell: Tell) -> Report:
    """Run the drill.

    Args:
        plan: what.
        ground: where.
        tell: is told of progress.
    """
    catalog = f"lakeward drill {uuid.uuid4().hex[:6]}"
    tree = ground.rooms.tree
    schema = Schema.declare(COLUMNS, PRIMARY_KEY, catalog)

    def dataset(name: str, arm: str) -> str:
        return tree.create_dataset(f"{catalog}.drill.{name}_{arm}", schema, arm=arm, actor="drill").name

    lanes = [{arm: dataset(f"lane_{number}", arm) for arm in LASTING_ARMS} for number in range(1, LANES + 1)]
    postgres, iceberg = (dataset("shared", arm) for arm in LASTING_ARMS)
    flipped = dataset("flipped", "postgres")
    names = (*(name for lane in lanes for name in lane.values()), postgres, iceberg)
    log = Log()
    model = Model(ground.rooms, log, [tree.dataset(name) for name in names])
    report = Report(plan, catalog, (*names, flipped))
    numbers = itertools.count(1)
    environment = {"LAKEWARD_LEDGER__LEASE_SECONDS": str(LEASE_SECONDS)}
    with Nursery(ground.module, ground.place, environment, log) as nursery:
        try:
            if plan.cases != 0:
                report.outcomes += _faults(plan, ground, nursery, model, lanes, numbers, tell)
            if plan.rounds:
                shared = (postgres, iceberg)
                rounds = Rounds(
                    ground.rooms, nursery, model, shared, numbers, lease_seconds=LEASE_SECONDS, seed=plan.seed
                )
                for each in rounds.run(plan.rounds, lambda done: tell("random", done, plan.rounds, "rounds")):
                    report.rounds.append(each)
            if plan.flip_seconds:
                with tempfile.TemporaryDirectory(prefix="lakeward-journals-") as journals:
                    flips = FlipDrill(ground.rooms, nursery, flipped, Path(journals), plan.seed)
                    report.flips = flips.run(
                        plan.flip_seconds, lambda done: tell("flips", done, plan.flip_seconds, "seconds")
                    )
        except Stuck as error:
            report.stuck = str(error)
    return report


def _faults(
    plan: Plan,
    ground: Ground,
    nursery: Nursery,
    model: Model,
    lanes: Sequence[Mapping[str, str]],
    numbers: Iterator[int],
    tell: Tell,
) -> Iterator[Outcome]:
    """Run the cases of the matrix that the plan asks for."""
    generator = random.Random(plan.seed)
    matrix = Matrix(
        ground.rooms,
        nursery,
        model,
        lanes,
        numbers,
        outage=ground.outage,
        lease_seconds=LEASE_SECONDS,
        generator=generator,
    )
    cases = matrix.cases()
    if plan.cases is not None:
        cases = generator.sample(cases, min(plan.cases, len(cases)))
    yield from matrix.run(cases, lambda done: tell("steps", done, len(cases), "faults"))
