"""Behind pgbouncer in transaction mode each transaction of ours gets another server session, and all of it works.

Few sessions serve everybody, so whatever one leaves behind in a session meets somebody else.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import lakeward
from lakeward.errors import LakewardError
from lakeward.jobs.job import SUCCEEDED
from lakeward.jobs.queue import Jobs
from lakeward.jobs.worker import InProcessWorker
from lakeward.storage.requests import Output
from lakeward.testing import raise_at
from lakeward.types.conform import to_reader
from support.crashes import content, unclean
from support.ledger import expire
from support.waiting import until

THREADS = 6
COLUMNS = {"id": "long", "note": "string"}


def _append(dataset: lakeward.Dataset, *rows: Mapping[str, object]) -> Output:
    record = dataset.record
    return Output(record, "append", lambda: to_reader(list(rows), record.schema, dataset=record.name))


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_writes_reads_and_digests(ws: lakeward.Workspace, arm: str) -> None:
    dataset = ws.create_dataset(f"main.bounced.whole_{arm}", COLUMNS, arm=arm)
    dataset.write([{"id": 1, "note": "a"}, {"id": 2, "note": None}])
    dataset.write([{"id": 3, "note": "c"}])
    assert content(dataset) == [(1, "a"), (2, None), (3, "c")]
    assert dataset.to_arrow(where="id > 1", version=1)["id"].to_pylist() == [2]
    dataset.write([{"id": 9, "note": "z"}], mode="replace")
    other = "iceberg" if arm == "postgres" else "postgres"
    dataset.copy_to(other)
    assert dataset.digest(arm) == dataset.digest(other)
    assert dataset.verify().equal
    assert unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_keyed_writes(ws: lakeward.Workspace, arm: str) -> None:
    dataset = ws.create_dataset(f"main.bounced.keyed_{arm}", COLUMNS, primary_key=["id"], arm=arm)
    dataset.write([{"id": number, "note": "old"} for number in range(5)])
    dataset.verify()

    def work(thread: int) -> None:
        for turn in range(3):
            dataset.write([{"id": number, "note": f"{thread} {turn}"} for number in (3, 10 + thread)], mode="upsert")

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    assert sorted(id_ for id_, _ in content(dataset)) == [*range(5), *range(10, 10 + THREADS)]
    assert dataset.write([{"id": 3}, {"id": 99}], mode="delete").rows_deleted == 1
    assert dataset.write([{"id": 0, "note": "old"}], mode="mirror").rows_deleted == 3 + THREADS
    assert dataset.verify().recorded == dataset.digest()
    assert sorted(dataset.to_arrow(version=1)["id"].to_pylist()) == list(range(5))
    assert unclean(ws, [dataset.name]) == []


def test_a_flip_there_and_back_under_a_writer(ws: lakeward.Workspace) -> None:
    dataset = ws.create_dataset("main.bounced.flipped", COLUMNS, primary_key=["id"])
    dataset.write([{"id": number, "note": "old"} for number in range(5)])
    flip, written, stop = ws.flip(dataset.name), [0], threading.Event()

    def write() -> None:
        while not stop.is_set():
            dataset.write([{"id": 100 + written[0], "note": "meanwhile"}], mode="upsert")
            written[0] += 1

    steps = [
        (lambda: flip.run("iceberg"), "iceberg_dual"),
        (flip.revert, "dual"),
        (flip.run, "iceberg_dual"),
        (lambda: flip.complete(confirm=dataset.name), "iceberg_native"),
        (lambda: flip.run("postgres"), "dual"),
        (lambda: flip.complete(confirm=dataset.name), "pg"),
    ]
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for act, mode in steps:
                act()
                assert dataset.record.route.mode == mode
        finally:
            stop.set()
        writing.result()
    assert written[0] > 0
    assert sorted(id_ for id_, _ in content(dataset)) == [*range(5), *range(100, 100 + written[0])]
    assert unclean(ws, [dataset.name]) == []


def test_the_server_sessions_are_shared(ws: lakeward.Workspace, bouncer: str, sessions: int) -> None:
    """Without this the other tests would prove nothing."""
    seen = set()
    for _ in range(4):
        with psycopg.connect(bouncer) as connection:
            seen.add(connection.execute("SELECT pg_backend_pid()").fetchone())
    with ws.database.transaction() as connection:
        connection.exec_driver_sql("SELECT 1")
        with psycopg.connect(bouncer) as other:
            seen.add(other.execute("SELECT pg_backend_pid()").fetchone())
    assert 0 < len(seen) <= sessions


def test_six_threads_at_once(ws: lakeward.Workspace) -> None:
    datasets = [ws.create_dataset(f"main.bounced.crowd_{arm}", COLUMNS, arm=arm) for arm in ("postgres", "iceberg")]

    def work(thread: int) -> None:
        for turn in range(3):
            row = {"id": 10 * thread + turn, "note": f"thread {thread}"}
            outputs = [_append(dataset, row) for dataset in datasets]
            ws.storage.build(outputs, writer="crowd")
            for dataset in datasets:
                dataset.to_arrow()
                dataset.digest()

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    expected = sorted(10 * thread + turn for thread in range(THREADS) for turn in range(3))
    for dataset in datasets:
        assert sorted(row[0] for row in content(dataset)) == expected
    assert datasets[0].digest() == datasets[1].digest()
    assert unclean(ws, [dataset.name for dataset in datasets]) == []


@pytest.mark.parametrize(("step", "stands"), [("decide", False), ("publish", True)])
def test_recovery(ws: lakeward.Workspace, bouncer: str, tmp_path: Path, step: str, stands: bool) -> None:
    arms = ("postgres", "iceberg")
    names = [ws.create_dataset(f"main.bounced.{step}_{arm}", COLUMNS, arm=arm).name for arm in arms]
    # An error that nobody can clean up after: the database is gone for this process when it tries to.
    warehouse = ws.settings.values.warehouse
    faults = raise_at(step, KeyboardInterrupt())
    with lakeward.open(tmp_path, database_url=bouncer, warehouse=warehouse, faults=faults) as dying:
        dying.storage.protocol._abort = lambda job, reason: None  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            dying.storage.build([_append(dying.dataset(name), {"id": 1, "note": "x"}) for name in names], writer="t")
    expire(ws.database)
    outcomes = sorted(each.outcome for each in ws.recover() if each.dataset in names)
    assert outcomes == (["published"] if stands else ["aborted", "aborted"])
    assert ws.recover() == []
    assert [content(ws.dataset(name)) for name in names] == [[(1, "x")] if stands else []] * 2
    assert unclean(ws, names) == []


def test_an_error_leaves_no_session_behind(ws: lakeward.Workspace, sessions: int) -> None:
    """A transaction that is rolled back gives its server session to the next one as it was."""
    dataset = ws.create_dataset("main.bounced.errors", COLUMNS)
    for _ in range(2 * sessions):
        with pytest.raises(LakewardError):
            dataset.write([{"id": "no number", "note": None}])
    dataset.write([{"id": 1, "note": None}])
    assert content(dataset) == [(1, None)]


def test_jobs(ws: lakeward.Workspace) -> None:
    """A worker can't hear of jobs there, and looks for them; statements of the queue need no search path."""
    queue = Jobs(ws)
    with InProcessWorker(ws, width=2):
        first = queue.add("recover")
        until(lambda: queue.get(first.id).ended)
        second = queue.add("recover", key="another")
        until(lambda: queue.get(second.id).ended)
    assert [queue.get(each.id).status for each in (first, second)] == [SUCCEEDED] * 2
    assert queue.log(first.id)
