"""Reads the same rows from both arms of a dataset as readers do, and compares what they get and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeward.control.tree import DatasetRecord
from lakeward.errors import ArmNotCurrent
from lakeward.migration.accepting import accepted
from lakeward.migration.stage import Rooms
from lakeward.storage.proving import not_compared
from lakeward.storage.requests import ReadRequest
from lakeward.types.digest import Digest, digest_batches

MOST_ROWS = 1_000_000
"""One read takes so many positions at most: all rows were compared by `verify`."""

READER = "flip.canary"
"""One of `COMPARERS`: each of its reads names its arm."""


@dataclass(frozen=True)
class Read:
    """One way to read a dataset: what it is called, and the request, at a version that both arms hold."""

    what: str
    request: ReadRequest


@dataclass(frozen=True)
class ComparedRead:
    """What both arms answered to one read.

    Args:
        what: which read it was.
        version: of which version.
        digests: of the answer, by arm; its counts are rows.
        seconds: until the last row was there, by arm, without the time for hashing.
    """

    what: str
    version: int
    digests: dict[str, Digest]
    seconds: dict[str, float]

    @property
    def equal(self) -> bool:
        """Whether both answers have the same rows."""
        return len(set(self.digests.values())) == 1

    @property
    def rows(self) -> int:
        """The rows of the longer answer."""
        return max(digest.count for digest in self.digests.values())


def reads_of(rooms: Rooms, dataset: DatasetRecord, other: str) -> list[Read]:
    """Return the reads that a canary makes: everything, what is new, a part by a filter, and a part of the columns.

    Columns in which a rule accepts differences are left out; of a large dataset, rows of one part of it are read.

    Args:
        rooms: the parts of the workspace.
        dataset: which one.
        other: the arm that does not serve it; the newest version that it holds is read.

    Raises:
        ArmNotCurrent: it holds none.
    """
    lag = rooms.replication.lag(dataset, other)
    version = lag.holds
    if lag.waits is not None:
        raise not_compared(dataset.name, other)
    if version is None:
        raise ArmNotCurrent(
            f"the {other} arm holds no version of dataset {dataset.name}",
            safe="nothing was changed",
            next_step=f"lakeward flip start {dataset.name}",
            dataset=dataset.name,
            arm=other,
        )
    ignored = accepted(rooms, dataset).columns
    columns = tuple(name for name in dataset.schema.names if name not in ignored)
    if not columns:
        return []
    positions = dataset.next_row_index
    part = _positions(positions // 2, MOST_ROWS) if positions > MOST_ROWS else None
    head = ReadRequest(columns, version=version, where=part)
    third = _positions(positions // 3, min(max(positions // 3, 1), MOST_ROWS))
    some = columns[: max(len(columns) // 2, 1)]
    what, of_it = (f"all rows of version {version}", "") if part is None else (f"rows where {part}", f", where {part}")
    return [
        Read(what, head),
        Read(f"rows written since version {version - 1}{of_it}", replace(head, since=version - 1)),
        Read(f"rows where {third}", replace(head, where=third)),
        Read(f"columns {', '.join(some)}{of_it}", replace(head, columns=some)),
    ]


def _positions(first: int, count: int) -> str:
    """Return the filter for so many positions."""
    return f"__row_index >= {first} AND __row_index < {first + count}"


def read_both(rooms: Rooms, dataset: DatasetRecord, read: Read, arms: tuple[str, str]) -> ComparedRead:
    """Read from both arms through the facade, one after the other, and keep what was found.

    A difference that is found blocks a switch, as any other does.

    Args:
        rooms: the parts of the workspace.
        dataset: which one.
        read: what to read.
        arms: from which arms.
    """
    digests, seconds = {}, {}
    for arm in arms:
        watch = _Stopwatch()
        rows = rooms.storage.read(dataset, replace(read.request, arm=arm), reader=READER)
        columns = read.request.columns or dataset.schema.names
        digests[arm] = digest_batches(dataset.schema.select(columns), watch.over(rows))
        seconds[arm] = watch.seconds
    version = read.request.version
    assert version is not None, "a version that both hold"
    found = ComparedRead(read.what, version, digests, seconds)
    rooms.parity.record(
        dataset.id,
        version,
        "read",
        equal=found.equal,
        rows=found.rows,
        details={
            "reader": READER,
            "what": found.what,
            "primary": dataset.route.primary_arm,
            "arms": {
                arm: {"rows": digest.count, "digest": str(digest), "seconds": seconds[arm]}
                for arm, digest in digests.items()
            },
        },
    )
    return found


class _Stopwatch:
    """Counts the seconds in which a stream is waited for, from the moment that it is made."""

    def __init__(self) -> None:
        self._since = time.perf_counter()
        self.seconds = 0.0

    def over(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return the same stream."""
        self._stop()

        def batches() -> Iterator[pa.RecordBatch]:
            self._since = time.perf_counter()
            for batch in rows:
                self._stop()
                yield batch
                self._since = time.perf_counter()
            self._stop()

        return pa.RecordBatchReader.from_batches(rows.schema, batches())

    def _stop(self) -> None:
        self.seconds += time.perf_counter() - self._since
