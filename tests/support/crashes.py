"""Starts, kills and stops real processes that write; and says whether what they left behind is clean."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

import lakeward
from lakeward.storage.table import table_ref
from lakeward.storage.verbs import KEYED
from support.arms import branches, iceberg_table, stored_versions

SCRIPT = Path(__file__).parents[1] / "crash" / "driver.py"


class Driver:
    """The process that forks cases, for one workspace.

    Args:
        url: the workspace's database.
        warehouse: its warehouse.
    """

    def __init__(self, url: str, warehouse: Path) -> None:
        self._common = {"url": url, "warehouse": str(warehouse)}
        self.ended: dict[str, Any] = {}
        """How the process of the last `running` ended."""
        sources = Path(lakeward.__file__).parents[1]
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(sources), str(SCRIPT.parents[1])])},
        )

    def run(self, **case: Any) -> Case:
        """Run a case until it stops, is killed or ends."""
        return self.run_together([case])[0]

    @contextlib.contextmanager
    def running(self, **case: Any) -> Iterator[int]:
        """Start a case that goes on until it is told to stop, and wait for its end behind the block.

        Yields:
            Its process, to which signals can be sent.
        """
        descriptor, result = tempfile.mkstemp(prefix="lakeward-case-")
        os.close(descriptor)
        pid = self._ask({"start": {**self._common, **case, "result": result}})["pid"]
        try:
            yield pid
        finally:
            self.ended = self._ask({"wait": pid})
            Path(result).unlink(missing_ok=True)

    def run_together(self, cases: Sequence[dict[str, Any]]) -> list[Case]:
        """Run cases at once, each in a process of its own, until each has stopped, been killed or ended."""
        started = []
        for case in cases:
            descriptor, result = tempfile.mkstemp(prefix="lakeward-case-")
            os.close(descriptor)
            answer = self._ask({"start": {**self._common, **case, "result": result}})
            started.append((answer["pid"], Path(result)))
        return [Case(self, self._ask({"watch": pid}), result) for pid, result in started]

    def preload(self, module: str) -> None:
        """Import what cases call, once for all of them."""
        self._ask({"preload": module})

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the driver has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


class Case:
    """One process that ran a case: how it went, and what it answered."""

    def __init__(self, driver: Driver, first: dict[str, Any], result: Path) -> None:
        self._driver = driver
        self._result = result
        self.pid: int = first["pid"]
        self.event: str = first["event"]
        self.signal: int | None = first.get("signal")

    def wake(self) -> dict[str, Any]:
        """Let a stopped process go on to its end, and return its answer."""
        os.kill(self.pid, signal.SIGCONT)
        self.event = self._driver._ask({"wait": self.pid})["event"]
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Return what the process answered, or its error."""
        answer: dict[str, Any] = json.loads(self._result.read_text(encoding="utf-8"))
        with contextlib.suppress(FileNotFoundError):
            self._result.unlink()
        return answer

    def killed(self) -> bool:
        """Say whether the fault killed it, as it should."""
        self._result.unlink(missing_ok=True)
        return self.event == "killed" and self.signal == signal.SIGKILL


def content(dataset: lakeward.Dataset, arm: str | None = None) -> list[tuple[int, str]]:
    """Return the rows of a dataset, in the order of their positions."""
    table = dataset.to_arrow(identity=True, arm=arm).sort_by("__row_index")
    return list(zip(table["id"].to_pylist(), table["note"].to_pylist(), strict=True))


def unclean(workspace: lakeward.Workspace, names: Sequence[str]) -> list[str]:
    """Return what is left over or does not fit together, in words; nothing, if all is well."""
    return [finding for name in names for finding in _unclean(workspace, workspace.dataset(name))]


def _unclean(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> Iterator[str]:
    record = dataset.record
    history = dataset.history(1000)
    yield from (f"version {each.version} is still open" for each in history if each.status == "open")
    yield from (
        f"version {each.version} is not published"
        for each in history
        if each.status == "committed" and each.published_at is None
    )
    committed = [each.version for each in history if each.status == "committed"]
    if record.head_version != max(committed, default=0):
        yield f"head is {record.head_version}, the newest committed version {max(committed, default=0)}"
    strangers = set(stored_versions(workspace, record.id)) - set(committed)
    if strangers:
        yield f"rows of uncommitted versions {sorted(strangers)}"
    waiting = workspace.replication.proving.waiting(record, "iceberg")
    copy = f"lw-{waiting.version}-{waiting.unproved}" if waiting is not None else None
    yield from (f"branch {name}" for name in branches(workspace, table_ref(record)) if name != copy)
    with psycopg.connect(workspace.database.libpq_url) as connection:
        (leases,) = connection.execute(
            "SELECT count(*) FROM lakeward.leases l JOIN lakeward.dataset_transactions t ON t.id = l.transaction_id "
            "WHERE t.dataset_id = %s",
            (record.id,),
        ).fetchone() or (None,)
    if leases:
        yield f"{leases} leases"
    rows = dataset.to_arrow(identity=True)
    if rows.num_rows != record.row_count:
        yield f"{rows.num_rows} rows where the ledger counts {record.row_count}"
    positions = sorted(rows["__row_index"].to_pylist())
    if any(each.verb in KEYED for each in history):
        # Rows that are deleted by key leave gaps.
        if len(set(positions)) != rows.num_rows or positions[-1:] >= [record.next_row_index]:
            yield "positions twice or never given"
    elif positions != list(range(rows.num_rows)):
        yield "positions with gaps or twice"
    if len(set(rows["__row_id"].to_pylist())) != rows.num_rows:
        yield "ids twice"
    yield from _main_differs(workspace, dataset)
    dataset.verify()


def _main_differs(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> Iterator[str]:
    """Compare `main` of the Iceberg table with the newest version that its arm holds, and that was compared."""
    record = dataset.record
    newest = workspace.ledger.newest_arm_version(record.id, "iceberg")
    newest = newest if newest is not None and newest.unproved is None else None
    table = iceberg_table(workspace, table_ref(record))
    if newest is not None and table.current_snapshot().snapshot_id != newest.snapshot_id:
        yield f"main is not at version {newest.version}"
    if newest is None and table is not None and table.scan().to_arrow().num_rows:
        yield "main has rows that no version has"
