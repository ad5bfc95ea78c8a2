"""What must be in the drill's datasets: the plain model that everything is compared with.

The ledger says which writes are committed and in which order; the model applies just these, so that whatever a dataset
holds is compared with a prefix of its own committed versions. Whether the *right* writes are committed is checked
against what each writer was told.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakeward.control.db import Database, Queries
from lakeward.control.ledger import Ledger
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.migration.flip import Flip
from lakeward.storage.facade import Storage
from lakeward.storage.recovery import Recovery
from lakeward.storage.requests import ReadRequest
from lakeward.testing.drill.writes import NOTHING, Content, Row, Write
from lakeward.types.digest import digest_batches
from lakeward.types.table import arrow_schema

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class Rooms:
    """The parts of an open workspace that the drill looks through; they survive every process that it kills."""

    database: Database
    tree: Tree
    ledger: Ledger
    storage: Storage
    recovery: Recovery
    flip: Callable[[str], Flip]


@dataclass
class Log:
    """Every write that was asked for, and what its writer was told: `acknowledged`, `refused`, or nothing."""

    writes: dict[str, Write] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    nothing: dict[str, dict[str, int]] = field(default_factory=dict)
    """For a write that was acknowledged, the outputs that changed nothing, with the version that they changed nothing
    of."""

    def asked(self, write: Write) -> Write:
        """Keep a write, before any process knows of it."""
        self.writes[write.label] = write
        return write


class DatasetModel:
    """One dataset, followed through its committed versions."""

    def __init__(self, rooms: Rooms, record: DatasetRecord, log: Log) -> None:
        self.id = record.id
        self.name = record.name
        self._rooms = rooms
        self._log = log
        self.content: dict[int, Content] = {0: NOTHING}
        """What every committed version holds."""
        self._unread: list[int] = []
        self.versions: dict[str, int] = {}
        """The version of every committed write, by its label."""
        self.head = 0
        self.watermark: int | None = None

    def follow(self) -> Iterator[str]:
        """Apply what was committed since the last time; yield what can't be true."""
        for row in self._rooms.database.fetch(QUERIES["committed"], {"dataset_id": self.id, "after": self.head}):
            version, label = row["version"], row["pipeline"]
            if row["parent_version"] != self.head:
                yield f"version {version} starts from {row['parent_version']}, and {self.head} was the newest"
            if row["kind"] == "compact":
                self._keep(version, self.content[self.head])
                continue
            write = self._log.writes.get(label)
            if write is None or self.name not in {name for name, _, _ in write.outputs}:
                yield f"version {version} is committed by {label!r}, which nobody asked for"
                continue
            if label in self.versions:
                yield f"{label} is committed twice, as versions {self.versions[label]} and {version}"
            if row["verb"] != write.mode(self.name):
                yield f"version {version} is by {row['verb']}, {label} asked for {write.mode(self.name)}"
            self._keep(version, write.applied(self.name, self.content[self.head]))
            self.versions[label] = version
            if sets_watermark(write.mode(self.name)):
                self.watermark = write.number

    def _keep(self, version: int, content: Content) -> None:
        self.content[version] = content
        self._unread.append(version)
        self.head = version

    def check(self, generator: random.Random) -> Iterator[str]:
        """Compare the dataset with the model; yield what differs, nothing if all is well."""
        record = self._rooms.tree.by_id(self.id)
        yield from self._totals(record)
        # The newest, all that came with it, and one of those that were read before: a late one, for retention may have
        # ended others.
        earlier = generator.sample(sorted(self.content)[1:][-10:], min(1, len(self.content) - 1))
        newest = [self.head] if self.head else []
        for version in dict.fromkeys([*newest, *self._unread, *earlier]):
            yield from (f"at version {version}: {what}" for what in self.differs(record, version))
        self._unread.clear()
        yield from self._left_over()

    def check_arms(self, arms: Iterable[str]) -> Iterator[str]:
        """Compare the head on each of these arms with the model; yield what differs."""
        record = self._rooms.tree.by_id(self.id)
        yield from self._totals(record)
        for arm in arms:
            yield from (f"on {arm}: {what}" for what in self.differs(record, self.head, arm))
            if self._rooms.storage.digest(record, arm=arm) != self._rooms.storage.digest(record):
                yield f"on {arm}: the digest is another one"
        yield from self._left_over()

    def _totals(self, record: DatasetRecord) -> Iterator[str]:
        if record.head_version != self.head:
            yield f"the head is version {record.head_version}, the newest committed one is {self.head}"
        expected = self.content[self.head]
        if record.row_count != len(expected.rows):
            yield f"the ledger counts {record.row_count} rows, there must be {len(expected.rows)}"
        digest = self._rooms.storage.digest(record)
        if digest != digest_batches(record.schema, self._batches(record, expected.rows)):
            yield f"the digest {digest} is not the model's"

    def _left_over(self) -> Iterator[str]:
        for row in self._rooms.database.fetch(QUERIES["left_over"], {"dataset_id": self.id}):
            yield str(row["what"])
        marks = self._rooms.database.fetch(QUERIES["watermark"], {"dataset_id": self.id, "source_id": self.id})
        mark = marks[0]["version"] if marks else None
        if mark != self.watermark:
            yield f"the watermark is {mark}, and the newest committed write sets {self.watermark}"

    def differs(self, record: DatasetRecord, version: int, arm: str | None = None) -> Iterator[str]:
        """Compare the rows of a version, with their places, with the model: on one arm, None: on that which serves."""
        expected = self.content[version]
        request = ReadRequest(version=version, identity=True, arm=arm)
        found = self._rooms.storage.read(record, request).read_all().sort_by("__row_index")
        yield from _difference(expected.rows, _rows(found))
        if found["__row_index"].to_pylist() != list(expected.places):
            yield "__row_index has gaps, or a value twice, or is another row's"
        if len(set(found["__row_id"].to_pylist())) != found.num_rows:
            yield "__row_id has a value twice"

    @staticmethod
    def _batches(record: DatasetRecord, rows: Sequence[Row]) -> list[pa.RecordBatch]:
        columns = [[row[0] for row in rows], [row[1] for row in rows]]
        schema = arrow_schema(record.schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return [pa.RecordBatch.from_arrays(arrays, schema=schema)]


class Model:
    """All datasets of a drill, and the writes that were asked for."""

    def __init__(self, rooms: Rooms, log: Log, records: Iterable[DatasetRecord]) -> None:
        self.rooms = rooms
        self.log = log
        self.datasets = {record.name: DatasetModel(rooms, record, log) for record in records}

    def check(self, generator: random.Random, names: Iterable[str] | None = None) -> list[str]:
        """Return every violation of a promise that shows in these datasets now (None: all); recovery must have run."""
        chosen = [self.datasets[name] for name in names or self.datasets]
        found = [f"{each.name}: {what}" for each in chosen for what in each.follow()]
        if not found:
            found += [f"{each.name}: {what}" for each in chosen for what in each.check(generator)]
        return found + self.answers({each.name for each in chosen})

    def committed(self, write: Write) -> list[bool]:
        """Say for each output of a write whether it is committed."""
        return [write.label in self.datasets[name].versions for name, _, _ in write.outputs]

    def together(self, heads: Mapping[int, int], labels: Iterable[str]) -> list[str]:
        """Return those of some writes of which a reader of these heads saw one output without the other."""
        found = []
        for label in labels:
            write = self.log.writes[label]
            seen = []
            for name, _, _ in write.outputs:
                dataset = self.datasets[name]
                version = dataset.versions.get(label)
                seen.append(version is not None and version <= heads.get(dataset.id, 0))
            if len(set(seen)) > 1 and all(self.datasets[name].id in heads for name, _, _ in write.outputs):
                found.append(f"{label}: a reader saw one output and not the other")
        return found

    def answers(self, names: set[str]) -> list[str]:
        """Compare what the writers of these datasets were told with what is there."""
        found = []
        for label, write in self.log.writes.items():
            if not names >= {name for name, _, _ in write.outputs}:
                continue
            committed, answer = self.committed(write), self.log.answers.get(label)
            if len(set(committed)) > 1:
                found.append(f"{label}: one output is committed, the other is not")
            elif answer == "acknowledged" and not all(committed) and not self._had_nothing_to_do(label):
                found.append(f"{label} was acknowledged and is not committed")
            elif answer == "refused" and any(committed):
                found.append(f"{label} was refused and is committed")
        return found

    def _had_nothing_to_do(self, label: str) -> bool:
        """Say whether each output of a write changes nothing of the version that its writer was told."""
        write, told = self.log.writes[label], self.log.nothing.get(label, {})
        if set(told) != {name for name, _, _ in write.outputs}:
            return False
        found = [(self.datasets[name].content.get(version), name) for name, version in told.items()]
        return all(content is not None and write.applied(name, content) == content for content, name in found)


def sets_watermark(mode: str) -> bool:
    """Say whether a write sets the watermark. One that may change nothing does not, for then no version tells of it."""
    return mode != "delete"


def _rows(table: pa.Table) -> list[Row]:
    return list(zip(table["id"].to_pylist(), table["note"].to_pylist(), strict=True))


def _difference(expected: Sequence[Row], found: Sequence[Row]) -> Iterator[str]:
    wanted, there = Counter(expected), Counter(found)
    if lost := wanted - there:
        yield f"{sum(lost.values())} rows are lost, as {next(iter(lost))}"
    if extra := there - wanted:
        yield f"{sum(extra.values())} rows too many, as {next(iter(extra))}"
