"""The check before a flip: what would become of the real values, if the other arm can take them, how long it takes.

It changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from lakeward.clock import Clock
from lakeward.control.flags.registry import WRITERS
from lakeward.control.flips import Measured
from lakeward.control.tree import DatasetRecord
from lakeward.errors import LakewardError, StorageError, ValueRefused
from lakeward.migration.directions import Direction
from lakeward.migration.stage import Rooms
from lakeward.storage.certificate import Certificate
from lakeward.storage.certifying import certify
from lakeward.storage.receiving import Ability, Receiver
from lakeward.storage.table import TableRef, table_ref
from lakeward.types.schema import Schema

MEASURED_ROWS = 10_000
"""Former backfills of fewer rows say nothing of the time that a large one takes."""

Tell = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class Expectation:
    """How long the first copy is expected to take, in seconds, and what that was concluded from."""

    seconds: float
    basis: str

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {"seconds": round(self.seconds, 3), "basis": self.basis}


@dataclass(frozen=True)
class Check:
    """What a check found.

    Args:
        dataset: its name.
        source, to: the arms.
        certificate: what would become of the values; None: the dataset has no version yet.
        abilities: what else has to be as it should.
        expectation: how long the first copy will take; None: nothing is known.
    """

    dataset: str
    source: str
    to: str
    certificate: Certificate | None
    abilities: tuple[Ability, ...]
    expectation: Expectation | None

    @property
    def ok(self) -> bool:
        """Whether the dataset can be flipped."""
        refused = self.certificate is not None and self.certificate.refused
        return not refused and all(ability.ok for ability in self.abilities)

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            **vars(self),
            "ok": self.ok,
            "certificate": self.certificate.to_json() if self.certificate is not None else None,
            "abilities": [ability.to_json() for ability in self.abilities],
            "expectation": self.expectation.to_json() if self.expectation is not None else None,
        }

    def refuse(self) -> None:
        """Raise if the dataset can't be flipped.

        Raises:
            ValueRefused: a value would not survive, or the copy could not be written.
            StorageError: the other arm can't take the dataset, or something stands in the way.
        """
        again = f"lakeward flip check {self.dataset} --to {self.to}"
        for column in self.certificate.refused if self.certificate is not None else ():
            raise ValueRefused(
                f"dataset {self.dataset} can't be flipped to the {self.to} arm: column {column.column!r}, "
                + "; ".join(map(str, column.examples)),
                safe="nothing was changed",
                next_step=f"change these values; {again} shows all columns",
                dataset=self.dataset,
                column=column.column,
                examples=[example.to_json() for example in column.examples],
            )
        for ability in self.abilities:
            if not ability.ok:
                raise StorageError(
                    f"dataset {self.dataset} can't be flipped to the {self.to} arm: {ability.name}: {ability.found}",
                    safe="nothing was changed",
                    next_step=ability.next_step or again,
                    dataset=self.dataset,
                    ability=ability.name,
                )


def check(rooms: Rooms, dataset: DatasetRecord, direction: Direction, tell: Tell) -> Check:
    """Read all rows of the head once, and look at all that a flip needs.

    Args:
        rooms: the parts of the workspace.
        dataset: which one.
        direction: where it would go.
        tell: is told how many rows were read, and of how many.

    Raises:
        ColumnMismatch, CatalogError: the other arm can't be asked.
    """
    dataset = rooms.tree.by_id(dataset.id)
    place = rooms.storage.routing.resolve(dataset)
    receiver = rooms.storage.routing.arm(direction.to).receiver()
    table, common = table_ref(dataset), _common(rooms, dataset, direction)
    if place is None:
        return Check(dataset.name, direction.source, direction.to, None, (*common, *receiver.abilities(table, 0)), None)
    sample = _Sample(rooms.clock, dataset, tell)
    certificate = certify(
        table,
        place,
        receiver,
        here=place.arm.receiver().column_types(table),
        there=receiver.column_types(table),
        json_too=rooms.flips.adopted(dataset.id),
        last=dataset.next_row_index,
        seen=sample.see,
    )
    expectation = _expected(rooms.flips.measured(direction.to, MEASURED_ROWS), certificate) or sample.expected(
        receiver, table, certificate
    )
    abilities = (*common, *receiver.abilities(table, certificate.bytes))
    return Check(dataset.name, direction.source, direction.to, certificate, abilities, expectation)


def columns_of(schema: Schema) -> str:
    """Return a short text that changes with a dataset's columns: their ids, names or types."""
    return hashlib.sha256(json.dumps(schema.to_json()).encode()).hexdigest()[:16]


def _common(rooms: Rooms, dataset: DatasetRecord, direction: Direction) -> list[Ability]:
    name = dataset.name
    mismatch = rooms.parity.mismatch(dataset.id)
    differs = f"a comparison at version {mismatch.version} found that the arms differ" if mismatch is not None else ""
    low = [
        f"{writer} up to {WRITERS[writer].ceiling}"
        for writer in rooms.flips.writers(dataset.id)
        if writer in WRITERS and not WRITERS[writer].allows(direction.final)
    ]
    old = len(rooms.replication.only_on(dataset, direction.source))
    stay = f"they stay on the {direction.source} arm as long as that keeps them, and `complete` says which go"
    history = f"none of {old - 1:,} old versions comes along; {stay}" if old > 1 else "there are no old versions"
    return [
        Ability(
            "ceilings", not low, f"a writer may not write there: {', '.join(low)}" if low else "no writer's is lower"
        ),
        Ability(
            "divergence",
            dataset.status == "ok",
            "no other engine's commit waits" if dataset.status == "ok" else f"the dataset is {dataset.status}",
            f"lakeward ledger adopt {name}, or lakeward ledger restore {name}",
        ),
        Ability("parity", mismatch is None, differs or "no comparison has failed", f"lakeward flip verify {name}"),
        Ability("history", True, history),
    ]


@dataclass
class _Sample:
    """Tells of progress, and keeps the first batch and the time that reading took."""

    clock: Clock
    dataset: DatasetRecord
    tell: Tell
    rows: int = 0
    first: pa.RecordBatch | None = None
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock.monotonic()

    def see(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self.first = self.first if self.first is not None else batch
        self.tell("check", self.rows, self.dataset.row_count)

    def expected(self, receiver: Receiver, table: TableRef, certificate: Certificate) -> Expectation | None:
        """Conclude from the time of this reading, and from that of making what the other arm keeps of one batch."""
        first, reading = self.first, self.clock.monotonic() - self.started
        if first is None or certificate.refused:
            return None
        started = self.clock.monotonic()
        try:
            receiver.rehearse(table, first)
        except LakewardError:
            # Named in the certificate, or by the abilities.
            return None
        making = (self.clock.monotonic() - started) * certificate.rows / first.num_rows
        return Expectation(reading + making, f"measured on its first {first.num_rows:,} rows, without the disk's time")


def _expected(former: list[Measured], certificate: Certificate) -> Expectation | None:
    """Conclude from the backfills that there were."""
    seconds, size = sum(each.seconds for each in former), sum(each.bytes for each in former)
    if not seconds or not size:
        return None
    basis = f"{len(former)} former backfills to this arm, {size / seconds / 1e6:,.1f} MB/s"
    return Expectation(
        certificate.bytes * seconds / size, basis if len(former) > 1 else basis.replace("s to", " to", 1)
    )
