"""The step of `lakeward demo` that flips a dataset to Iceberg while a writer and a reader of it go on."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from lakeward.cli.text import counted

if TYPE_CHECKING:
    from lakeward.cli.session import Session
    from lakeward.migration.flip_status import Step
    from lakeward.wiring.workspace import Workspace

RAW, FLIPPED, PIPELINE = "nyc.raw.flights", "nyc.analytics.flights_enriched", "flights"
CORRECTED = "time_hour >= timestamptz '2013-12-31 18:00:00-05' and arr_delay < 100 and air_time is not null"
"""The flights that the writer corrects, and the reader looks at: some of the last evening of the year."""
PAUSE_SECONDS = 1.0
"""Between two writes, and between two reads."""
STEP = "flip"


class Demonstration(Protocol):
    """What this step needs of the demo that it is a step of."""

    session: Session
    workspace: Workspace
    iceberg: dict[str, str]

    def report(self, step: str, text: str, started: float, **facts: object) -> None:
        """Print what was done, and keep it for JSON."""

    def already(self, step: str, text: str) -> None:
        """Print that an earlier run did it."""


class Writer:
    """Corrects the air time of a few raw flights by a minute, and builds what follows from them; next time back again.

    It knows nothing of arms: it is a pipeline like any other. An even number of corrections leaves the data as it was.

    Args:
        workspace: where the pipeline is applied.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._rows = workspace.dataset(RAW).to_arrow(where=CORRECTED).to_pylist()
        self.versions: list[int] = []
        self.seconds: list[float] = []
        self._written = threading.Condition()

    def act(self) -> None:
        """Write and build once."""
        started = time.monotonic()
        longer = 1 - len(self.versions) % 2
        rows = [{**row, "air_time": row["air_time"] + longer} for row in self._rows]
        self._workspace.dataset(RAW).write(rows, mode="upsert")
        [built] = self._workspace.build(PIPELINE)
        version = next(made.version for made in built.transactions if made.dataset == FLIPPED)
        with self._written:
            self.versions.append(version)
            self.seconds.append(time.monotonic() - started)
            self._written.notify_all()

    def wait(self, running: Future[None]) -> None:
        """Return once one more write is committed, or the writer has failed."""
        with self._written:
            before = len(self.versions)
            self._written.wait_for(lambda: len(self.versions) > before or running.done(), timeout=60)

    def told(self) -> str:
        """Say what it did."""
        longest, half = max(self.seconds), statistics.median(self.seconds)
        return (
            f"the writer: {counted(len(self.versions), 'build')} committed, versions {self.versions[0]} to "
            f"{self.versions[-1]}, none failed; half of them took up to {half:.1f} s, the longest {longest:.1f} s"
        )


class Reader:
    """Reads the corrected flights of the dataset again and again.

    Args:
        workspace: where the dataset is.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._dataset = workspace.dataset(FLIPPED)
        self.rows: list[int] = []
        self.versions: list[set[int]] = []

    def act(self) -> None:
        """Read once: how many rows there are, and of which versions they are."""
        rows = self._dataset.to_arrow(columns=["air_time"], where=CORRECTED, identity=True)
        self.rows.append(rows.num_rows)
        self.versions.append(set(rows["__version"].to_pylist()))

    def faults(self) -> list[str]:
        """Say what it should not have seen; nothing, if all was well."""
        newest = [max(seen, default=0) for seen in self.versions]
        found = {
            "an empty read": 0 in self.rows,
            "a part of the rows": len(set(self.rows)) > 1,
            "two versions at once": any(len(seen) > 1 for seen in self.versions),
            "an older version after a newer one": newest != sorted(newest),
        }
        return [what for what, seen in found.items() if seen]

    def told(self) -> str:
        """Say what it saw."""
        newest = [max(seen, default=0) for seen in self.versions]
        saw = ", ".join(self.faults()) or "each version whole and in order, none empty"
        return f"the reader: {counted(len(self.rows), 'read')}, versions {newest[0]} to {newest[-1]}: {saw}"


@contextmanager
def going_on(*acts: Callable[[], None]) -> Iterator[list[Future[None]]]:
    """Repeat each act in a thread of its own for the length of a block.

    Raises:
        Exception: what one of them raised, once the block is left.
    """
    stop = threading.Event()

    def repeat(act: Callable[[], None]) -> None:
        act()
        while not stop.wait(PAUSE_SECONDS):
            act()

    with ThreadPoolExecutor(len(acts), thread_name_prefix="lakeward-demo") as pool:
        running = [pool.submit(repeat, act) for act in acts]
        try:
            yield running
        finally:
            stop.set()
        for each in running:
            each.result()


def flip(demo: Demonstration) -> None:
    """Flip to Iceberg, revert, flip again, and complete, while a pipeline writes the dataset and a reader reads it."""
    workspace = demo.workspace
    dataset = workspace.dataset(FLIPPED)
    route = dataset.record.route
    if route.mode == "iceberg_native":
        demo.already(STEP, f"{FLIPPED} is served by the iceberg arm alone")
    else:
        _under_traffic(demo, workspace)
    route = dataset.record.route
    demo.session.say(f"{'':<12} the route: served by {route.primary_arm}, mode {route.mode}, epoch {route.epoch}")
    demo.iceberg = dataset.locate()["iceberg"]


def _under_traffic(demo: Demonstration, workspace: Workspace) -> None:
    flip = workspace.flip(FLIPPED, demo.session.progress_of_stage)
    writer, reader = Writer(workspace), Reader(workspace)
    acts: tuple[tuple[str, Callable[[], str]], ...] = (
        (f"{FLIPPED} to iceberg", lambda: _stages(flip.run(to="iceberg"))),
        ("revert", lambda: "; ".join(flip.revert())),
        ("once more", lambda: _stages(flip.run())),
        ("the rows leave postgres", lambda: _stages([flip.complete(confirm=FLIPPED)])),
    )
    begun = time.monotonic()
    with going_on(writer.act, reader.act) as running:
        for what, act in acts:
            writer.wait(running[0])
            started = time.monotonic()
            told, *more = act().splitlines()
            demo.report(STEP, f"{what}: {told}", started)
            for line in more:
                demo.session.say(f"{'':<12} {line}")
        writer.wait(running[0])
    if len(writer.versions) % 2:
        writer.act()
    facts = {"versions": writer.versions, "longest": max(writer.seconds), "reads": len(reader.rows)}
    demo.report(STEP, writer.told(), begun, faults=reader.faults(), **facts)
    demo.session.say(f"{'':<12} {reader.told()}")


def _stages(steps: Sequence[Step]) -> str:
    """Say how long each stage took, and which digest all rows have on both arms."""
    took = ", ".join(f"{step.stage} {step.seconds:.2f} s" for step in steps)
    return "\n".join([took, *(f"both arms: {step.details['digest']}" for step in steps if "digest" in step.details)])
