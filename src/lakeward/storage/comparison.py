"""Compares what a reader is given with what another arm would have given it, beside the reader, by digests that add up.

Two threads: one hashes the batches that the reader gets, from a short queue; the other one reads the other arm. Where
differences in some columns are accepted, both hash the rows once more without them. Neither holds more than a few
batches, and the order of the rows does not count. The reader waits only while the queue is full and the hashing gets
on; when it has its last batch, it goes its way.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakeward.clock import Clock
from lakeward.storage.duck import Duck
from lakeward.types.digest import EMPTY, Digest, digest_batches
from lakeward.types.schema import Schema

QUEUED_BATCHES = 4

STALLED_SECONDS = 5.0
"""If no batch was hashed for so long, the reader goes on alone, and nothing is compared."""

LOOK_SECONDS = 0.1
"""So often a reader that waits looks whether there is still somebody to wait for."""

READING = "lakeward shadow read"
"""What the thread that reads the other arm is called."""

Opened = Callable[[], pa.RecordBatchReader]


@dataclass(frozen=True)
class Hashed:
    """The columns of a read that are hashed.

    Args:
        whole: all of them.
        counted: those in which no difference is accepted; the same, if there are no others.
    """

    whole: Schema
    counted: Schema


class Side:
    """What one arm gave: how many rows, their digest, and how long the arm took.

    Args:
        digest: of all columns.
        counted: of those in which no difference is accepted.
        first: seconds until its first batch, from when it was asked; None: it gave none.
        seconds: seconds that it took in all, without the time that its rows waited to be taken.
    """

    def __init__(self) -> None:
        self.digest: Digest = EMPTY
        self.counted: Digest = EMPTY
        self.first: float | None = None
        self.seconds = 0.0

    def to_json(self) -> dict[str, object]:
        """Return it as the control plane keeps it."""
        return {
            "rows": self.digest.count,
            "digest": str(self.digest),
            "first_batch_seconds": self.first,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Compared:
    """What a comparison came to; with an `error` the arms could not be compared."""

    given: Side
    other: Side
    error: str | None = None

    @property
    def equal(self) -> bool | None:
        """Whether both arms gave the same rows, as far as that counts; None: that is not known."""
        return None if self.error is not None else self.given.counted == self.other.counted

    @property
    def accepted(self) -> bool:
        """Whether they differ in nothing but columns where that is accepted."""
        return bool(self.equal) and self.given.digest != self.other.digest


class Comparison:
    """One read that is compared.

    Args:
        duck: hashes.
        clock: for how long the arms take.
        hashed: says which columns to hash, in a thread of its own; the batches may have others besides.
        other: opens the other arm's rows, with the same columns.
        limit_seconds: how long the other arm may still take when the reader has its last batch.
        done: is told what it came to, in a thread of its own; not if the reader did not read to the end.
    """

    def __init__(
        self,
        duck: Duck,
        clock: Clock,
        hashed: Callable[[], Hashed],
        other: Opened,
        limit_seconds: float,
        done: Callable[[Compared | None], None],
    ) -> None:
        self._duck = duck
        self._clock = clock
        self._asked_columns = hashed
        self._open_other = other
        self._limit_seconds = limit_seconds
        self._done = done
        self._given, self._other = Side(), Side()
        self._queue: queue.Queue[pa.RecordBatch | None] = queue.Queue(QUEUED_BATCHES)
        self._stop = threading.Event()
        self._left = False
        self._error: str | None = None
        self._hashing = threading.Thread(target=self._hash_given, name="lakeward shadow digest", daemon=True)
        self.ended = threading.Event()
        """Set when the reader has its last batch, or wants no more."""

    def over(self, opened: Opened, begin: Callable[[], bool]) -> pa.RecordBatchReader:
        """Return what the reader gets, as it comes. Whatever becomes of the comparison, it gets all of it.

        Args:
            opened: opens the reader's rows; what it raises is raised here.
            begin: is asked at the reader's first batch whether there is to be a comparison.
        """
        begun = self._clock.monotonic()
        rows = opened()
        self._given.seconds = self._clock.monotonic() - begun
        return pa.RecordBatchReader.from_batches(rows.schema, self._batches(rows, begin))

    def _batches(self, rows: pa.RecordBatchReader, begin: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
        if not begin():
            yield from rows
            return
        self._hashing.start()
        try:
            for batch in self._timed(rows, self._given):
                self._hand_over(batch)
                yield batch
            self._hand_over(None)
        except BaseException:
            # It wants no more, or its own arm failed: there is nothing to compare.
            self.give_up()
            raise
        finally:
            self.ended.set()

    def join(self) -> None:
        """Wait for what it comes to, which its limit bounds once the reader has ended."""
        self._hashing.join()

    def give_up(self) -> None:
        """End it without a finding."""
        self._left = True
        self._halt()

    def _halt(self) -> None:
        self._stop.set()
        try:
            # Wakes up who waits for a batch. Where the queue is full nobody does.
            self._queue.put_nowait(None)
        except queue.Full:
            pass

    def _timed(self, rows: pa.RecordBatchReader, side: Side) -> Iterator[pa.RecordBatch]:
        """Yield batches, and note how long they took to come."""
        while True:
            begun = self._clock.monotonic()
            batch = next(rows, None)
            side.seconds += self._clock.monotonic() - begun
            if batch is None:
                return
            side.first = side.seconds if side.first is None else side.first
            yield batch

    def _hand_over(self, batch: pa.RecordBatch | None) -> None:
        """Give the hashing thread a batch, or None at the end; if that does not get on, go on without it."""
        for _ in range(int(STALLED_SECONDS / LOOK_SECONDS)):
            if self._stop.is_set():
                return
            try:
                self._queue.put(batch, timeout=LOOK_SECONDS)
            except queue.Full:
                continue
            return
        self._error = f"its rows were not hashed for {STALLED_SECONDS:g} s"
        self._halt()

    def _hash_given(self) -> None:
        """Let the other arm be read, hash what the reader gets, wait, and tell what it came to."""
        try:
            hashed = self._asked_columns()
            reading = threading.Thread(target=self._read_other, args=(hashed,), name=READING, daemon=True)
            reading.start()
            self._digest(self._taken(), hashed, self._given)
            reading.join(self._limit_seconds if not self._stop.is_set() else 0)
            if reading.is_alive() and self._error is None:
                self._error = f"the other arm took longer than the reader by more than {self._limit_seconds:g} s"
        except Exception as error:
            self._error = f"{type(error).__name__}: {error}"
        finally:
            self._stop.set()
            self._done(None if self._left else Compared(self._given, self._other, self._error))

    def _taken(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._queue.get()) is not None:
            yield batch

    def _read_other(self, hashed: Hashed) -> None:
        """Read and hash what the other arm has. That it can't be read is told, and is no difference."""
        try:
            begun = self._clock.monotonic()
            rows = self._open_other()
            self._other.seconds = self._clock.monotonic() - begun
            self._digest(self._timed(rows, self._other), hashed, self._other)
        except Exception as error:
            self._error = f"{type(error).__name__}: {error}"

    def _digest(self, batches: Iterator[pa.RecordBatch], hashed: Hashed, side: Side) -> None:
        whole, counted = EMPTY, EMPTY
        with self._duck.session() as connection:

            def digest(schema: Schema, batch: pa.RecordBatch) -> Digest:
                if not schema.columns:
                    return Digest(batch.num_rows, 0, 0)
                one = pa.RecordBatchReader.from_batches(batch.schema, [batch])
                return digest_batches(schema, one, connection=connection)

            for batch in batches:
                if self._stop.is_set():
                    break
                found = digest(hashed.whole, batch)
                whole += found
                counted += found if hashed.counted == hashed.whole else digest(hashed.counted, batch)
        side.digest, side.counted = whole, counted
