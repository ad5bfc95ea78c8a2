"""What the tests of moves share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

import lakeward
from lakeward.control.identifiers import home
from lakeward.control.moves import Relocation

COLUMNS = {"id": "long", "note": "string"}

Make = Callable[[str], lakeward.Dataset]

POLL_SECONDS = 0.01


def warehouse_files(dataset: lakeward.Dataset) -> dict[Path, bytes]:
    """Return the files below a dataset's location and what is in each."""
    location = Path(dataset.locate()["iceberg"]["location"].removeprefix("file://"))
    return {path: path.read_bytes() for path in location.rglob("*") if path.is_file()}


def to_its_home(dataset: lakeward.Dataset) -> Relocation:
    """Return the move that brings a dataset's table under its own names."""
    record = dataset.record
    return Relocation(record.identifier, home(record.slugs))


def finished_and_taken_back(workspace: lakeward.Workspace, dataset: lakeward.Dataset, relocation: Relocation) -> None:
    """Let others take over the move that is under way, as if its owner had been silent too long, and then undo it."""
    with workspace.database.driver() as connection, connection.transaction():
        connection.execute("UPDATE lakeward.leases SET lease_until = clock_timestamp() - interval '1 second'")
    assert [each.outcome for each in workspace.recover()] == ["moved"]
    workspace.moving.move(workspace.dataset(dataset.name).record, relocation.back())


def catalog_of(workspace: lakeward.Workspace) -> SqlCatalog:
    """Return PyIceberg's own client of the workspace's catalog, with nothing of ours."""
    return SqlCatalog("lakeward", uri=workspace.database.sqlalchemy_url, warehouse="file:///nowhere")


def names_in(catalog: SqlCatalog, relocation: Relocation) -> list[str]:
    """Say under which of its two names a table is in the catalog: `old`, `new`."""
    names = {"old": relocation.source.parts, "new": relocation.target.parts}
    return [name for name, parts in names.items() if catalog.table_exists(parts)]


def count_names(workspace: lakeward.Workspace, relocation: Relocation) -> int:
    """Count how many of a table's two names the catalog has, at one instant."""
    names = [(".".join(each.namespace), each.name) for each in (relocation.source, relocation.target)]
    with workspace.database.driver() as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM iceberg_tables WHERE (table_namespace, table_name) IN ((%s, %s), (%s, %s))",
            [part for name in names for part in name],
        ).fetchone() or (0,)
    return int(count)


def rows_by_pyiceberg(catalog: SqlCatalog, relocation: Relocation) -> int:
    """Count the rows of a table as PyIceberg reads it, under the old name, and where there is none, the new one."""
    try:
        found = catalog.load_table(relocation.source.parts)
    except NoSuchTableError:
        found = catalog.load_table(relocation.target.parts)
    return found.scan().to_arrow().num_rows


class Poller:
    """Takes looks in turn, one every so often, until the block ends; that raises what any of them raised.

    Args:
        looks: each returns how many rows, or tables, it sees.
        seconds: between two looks.
    """

    def __init__(self, looks: Iterable[Callable[[], int]], seconds: float = POLL_SECONDS) -> None:
        self._looks = list(looks)
        self._seconds = seconds
        self._stop = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self.seen: list[int] = []

    def _run(self) -> None:
        while True:
            for look in self._looks:
                self.seen.append(look())
                if self._stop.wait(self._seconds):
                    return

    def __enter__(self) -> Poller:
        self._running = self._thread.submit(self._run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._running.result()
        self._thread.shutdown()
