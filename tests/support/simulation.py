"""One simulated schedule: writers, recoverers and readers on two datasets, one move at a time, checked after each.

The protocol, the ledger, the slots and recovery are the product's own, on a real Postgres; the arms are in memory. The
seed chooses who moves, who crashes, whose lease runs out and which transaction's answer is lost.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from lakeward.clock import RandomIds
from lakeward.control.db import Database
from lakeward.control.ledger import Ledger
from lakeward.control.records import Window
from lakeward.control.slots import Slots
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import LakewardError, OutcomeUnknown
from lakeward.storage.arm import Scan, StorageArm
from lakeward.storage.duck import Duck
from lakeward.storage.protocol import WriteProtocol
from lakeward.storage.recovery import Recovery
from lakeward.storage.requests import Output
from lakeward.storage.table import table_ref
from lakeward.storage.verbs import VERBS
from lakeward.testing.cooperative import Actor, ActorClock, ActorDatabase, ActorFaults, Crashed, Interrupted, Trouble
from lakeward.testing.drill.writes import COLUMNS, PRIMARY_KEY, Write
from lakeward.types.conform import to_reader
from lakeward.types.schema import Schema
from support.simulated_arms import SimulatedRows, SimulatedTable, Store
from support.simulated_ledger import LedgerWatch

LEASE_SECONDS = 36_000.0
"""No lease runs out by itself: only the schedule ends one."""

LOCK_TIMEOUT_SECONDS = 1.0
MOST_MOVES = 3_000

CRASH, EXPIRE, TROUBLE, HELPER = 0.02, 0.04, 0.04, 0.03
"""How often a move is one of these: a crash, a lease that runs out, a lost transaction, a new recoverer or reader."""

MODES = {"append": 4, "replace": 2, "upsert": 2, "mirror": 1, "changes": 1}
"""How often a write is by each mode. Each of these has something to write."""

KEYS = (-1, -2, -3)
"""The ids of what is written by key."""

TROUBLES: tuple[Trouble, ...] = ("refused", "answer lost", "interrupted")

IDLE = {"start", "sleep", "intent", "intent:opened", "compute", "prepare", "audit", "decide", "publish"}
"""Going on from here touches neither the database nor an arm, up to the next place: there is nothing new to check."""

_numbers = itertools.count(1)


class PromiseBroken(AssertionError):
    """What the product promises does not hold; the text has the schedule."""


@dataclass
class Ground:
    """What schedules share: a database, and a connection that looks at it from outside."""

    database: Database
    outside: psycopg.Connection[Any]
    duck: Duck

    def datasets(self) -> tuple[DatasetRecord, DatasetRecord]:
        """Make a dataset on each arm."""
        tree = Tree(self.database)
        number = next(_numbers)
        schema = Schema.declare(COLUMNS, PRIMARY_KEY)
        first, second = (
            tree.create_dataset(f"main.simulation.{arm}_{number}", schema, arm=arm) for arm in ("postgres", "iceberg")
        )
        return first, second


@dataclass
class Simulation:
    """Everything of one schedule."""

    ground: Ground
    seed: int
    moves: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.records = self.ground.datasets()
        self.stores = {"postgres": Store(), "iceberg": Store()}
        self.writes: dict[str, Write] = {}
        self.watch = LedgerWatch(self.ground.outside, self.records, self.stores, self.writes)
        self.actors: list[Actor] = []
        self.names = itertools.count(1)
        self.troubles: dict[str, list[Trouble]] = {}
        self.labels: dict[str, list[str]] = {}
        self.cleaning: set[str] = set()
        """Who is in the middle of ending what it opened; interrupted there, it leaves that to recovery."""

    # Running ---------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Play the schedule to its end.

        Raises:
            PromiseBroken: at the first move after which a promise does not hold.
        """
        try:
            for _ in range(self.rng.randint(2, 4)):
                self.add("writer", self.writer)
            while any(not actor.done for actor in self.actors):
                if self.move():
                    self.watch.check()
                assert len(self.moves) < MOST_MOVES, "the schedule does not come to an end"
            self.finish()
        except AssertionError as error:
            shown = "\n  ".join(self.moves[-60:])
            replay = f"replay with LAKEWARD_TEST_SIMULATION={self.seed}"
            raise PromiseBroken(f"{error}\n{replay}; the last of {len(self.moves)} moves:\n  {shown}") from error
        finally:
            for actor in self.actors:
                if not actor.done:
                    actor.crash()

    def move(self) -> bool:
        """Choose one move and make it; return whether anything can have changed."""
        waiting = [actor for actor in self.actors if not actor.done]
        chance = self.rng.random()
        # The longer it takes the fewer accidents, so that every schedule ends.
        calm = min(1.0, 150 / (len(self.moves) + 1))
        if chance < CRASH * calm:
            actor = self.rng.choice(waiting)
            self.moves.append(f"crash {actor.name} at {actor.place}")
            actor.crash()
        elif chance < CRASH * calm + EXPIRE:
            self.expire(self.rng.choice(self.records))
        elif chance < CRASH * calm + EXPIRE + HELPER * calm:
            kind, body = self.rng.choice([("recoverer", self.recoverer), ("reader", self.reader)])
            self.add(kind, body)
        else:
            actor, lost = self.rng.choice(waiting), self.rng.random() < TROUBLE * calm
            idle = actor.place in IDLE
            self.step(actor, self.rng.choice(TROUBLES) if lost else None)
            return actor.done or not idle
        return False

    def step(self, actor: Actor, trouble: Trouble | None) -> None:
        """Let one actor go on."""
        self.moves.append(f"{actor.name} from {actor.place}" + (f": {trouble}" if trouble else ""))
        if trouble is not None:
            self.troubles.setdefault(actor.name, []).append(trouble)
        actor.step(trouble)
        if isinstance(actor.error, Interrupted):
            self.nothing_stays_open(actor)
        if actor.error is not None and not isinstance(actor.error, (Crashed, Interrupted, LakewardError)):
            raise AssertionError(f"{actor.name} failed: {actor.error!r}") from actor.error

    def nothing_stays_open(self, actor: Actor) -> None:
        """Check that whoever failed and could reach the ledger has ended what it opened: nobody waits for its lease."""
        if self.troubles.get(actor.name, []) in ([], ["interrupted"]) and actor.name not in self.cleaning:
            self.watch.check_ended(self.labels.get(actor.name, []))

    def expire(self, record: DatasetRecord) -> None:
        """Let a dataset's lease run out, and whoever stands in line for it be taken for gone."""
        self.moves.append(f"the lease on {record.arm} runs out")
        self.ground.outside.execute(
            "UPDATE lakeward.leases l SET lease_until = clock_timestamp() - interval '1 second' "
            "FROM lakeward.dataset_transactions t WHERE t.id = l.transaction_id AND t.dataset_id = %s",
            (record.id,),
        )
        self.ground.outside.execute(
            "UPDATE lakeward.slot_waiters SET alive_until = clock_timestamp() - interval '1 second' "
            "WHERE dataset_id = %s",
            (record.id,),
        )

    def finish(self) -> None:
        """After everybody is done: recovery leaves everything clean, and has nothing more to do."""
        for record in self.records:
            self.expire(record)
        for turn in ("recovery", "a second recovery"):
            actor = self.add(turn, self.recoverer)
            while not actor.done:
                actor.step()
                self.watch.check()
            assert actor.error is None, f"{turn} failed: {actor.error!r}"
            assert turn == "recovery" or actor.result == [], f"{turn} still found {actor.result}"
        self.watch.clean()

    # Actors ----------------------------------------------------------------------------------------------------------

    def add(self, kind: str, body: Callable[[Actor], object]) -> Actor:
        """Bring in one more actor."""
        actor = Actor(f"{kind} {next(self.names)}", body)
        self.moves.append(f"{actor.name} comes in")
        self.actors.append(actor)
        return actor

    def stack(self, actor: Actor) -> tuple[Tree, Ledger, Slots, dict[str, StorageArm], Recovery]:
        """Return the product's parts as this actor has them."""
        database = ActorDatabase(self.ground.database, actor)
        tree, ledger = Tree(database), Ledger(database, lease_seconds=LEASE_SECONDS)
        slots = Slots(database, ledger, ActorClock(actor), timeout_seconds=LOCK_TIMEOUT_SECONDS)
        arms: dict[str, StorageArm] = {
            "postgres": SimulatedRows(actor, database, self.stores["postgres"]),
            "iceberg": SimulatedTable(actor, database, self.stores["iceberg"]),
        }
        return tree, ledger, slots, arms, Recovery(tree, ledger, arms, ActorFaults(actor))

    def writer(self, actor: Actor) -> None:
        """Write once or twice; whatever it is told must be true."""
        tree, ledger, slots, arms, recovery = self.stack(actor)
        protocol = WriteProtocol(
            tree,
            ledger,
            slots,
            arms,
            recovery,
            duck=self.ground.duck,
            clock=ActorClock(actor),
            ids=RandomIds(),
            faults=ActorFaults(actor),
        )
        abort = protocol._abort

        def watched(job: Any, reason: str) -> None:
            self.cleaning.add(actor.name)
            abort(job, reason)
            self.cleaning.discard(actor.name)

        protocol._abort = watched  # type: ignore[method-assign]
        for _ in range(self.rng.randint(1, 2)):
            number = next(_numbers)
            chosen = self.rng.choice([self.records[:1], self.records[1:], self.records])
            modes = self.rng.choices(list(MODES), list(MODES.values()), k=2)
            write = Write(
                number,
                tuple((record.name, mode, self.ids(mode, number)) for record, mode in zip(chosen, modes, strict=False)),
            )
            self.writes[write.label] = write
            self.labels.setdefault(actor.name, []).append(write.label)
            try:
                protocol.run([_output(record, write) for record in chosen], writer="simulation", pipeline=write.label)
            except OutcomeUnknown:
                pass
            except LakewardError:
                self.watch.told[write.label] = False
                self.nothing_stays_open(actor)
            else:
                self.watch.told[write.label] = True

    def ids(self, mode: str, number: int) -> tuple[int, ...]:
        """Return the ids that a write brings: a new one, or by key those that other writes bring, too."""
        return tuple(self.rng.sample(KEYS, 2)) if VERBS[mode].keyed else (number,)

    def recoverer(self, actor: Actor) -> object:
        """Recover both datasets."""
        recovery = self.stack(actor)[-1]
        return [each for record in self.records for each in recovery.recover(record.id)]

    def reader(self, actor: Actor) -> None:
        """Read both datasets at the heads of one instant: whatever happens meanwhile, they are those versions."""
        _, ledger, _, arms, _ = self.stack(actor)
        heads = ledger.heads([record.id for record in self.records])
        self.watch.check_heads(heads)
        for record in self.records:
            version = ledger.arm_version(record.id, record.arm, heads[record.id]) if heads[record.id] else None
            if version is not None:
                table = arms[record.arm].scan(table_ref(record), version, Scan(record.schema.names)).read_all()
                rows = tuple(zip(table["id"].to_pylist(), table["note"].to_pylist(), strict=True))
                expected = self.watch.content[record.id][version.version].rows
                assert rows == expected, f"a reader of {record.arm} saw {rows}, not {expected}"


def _output(record: DatasetRecord, write: Write) -> Output:
    mode = write.mode(record.name)
    return Output(
        record,
        mode,
        lambda: to_reader(write.given(record.name), VERBS[mode].input_schema(record.schema), dataset=record.name),
        windows={record.id: Window(0, write.number)},
    )
