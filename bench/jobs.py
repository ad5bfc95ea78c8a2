"""How soon a job begins after it is queued, and how many small ones are done in a second."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measure import in_fresh_process, table

import lakeward
from lakeward.jobs import connector
from lakeward.jobs.job import Job
from lakeward.jobs.queue import Jobs
from lakeward.jobs.worker import InProcessWorker

JOBS = 50
LIMIT_MS = 200
MANY = 200

WORKERS = (
    "in the same process, told",
    "in another process, told",
    "two in other processes, told",
    "in the same process, looks, as behind a pooler",
)


def begun(worker: str) -> dict[str, object]:
    """Queue jobs one after the other, each when the one before has ended, and return how long they waited."""
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        queue = Jobs(workspace)
        adding, waited = [], []
        with _worker(worker, workspace, Path(scratch) / "home"):
            _ended(queue, queue.add("recover").id)
            for _ in range(JOBS):
                started = time.perf_counter()
                job = queue.add("recover")
                adding.append((time.perf_counter() - started) * 1000)
                found = _ended(queue, job.id)
                assert found.started_at is not None and found.added_at is not None
                waited.append((found.started_at - found.added_at).total_seconds() * 1000)
            started = time.perf_counter()
            last = [queue.add("recover", key=str(number)).id for number in range(MANY)][-1]
            _ended(queue, last)
            many = MANY / (time.perf_counter() - started)
    waited.sort()
    return {
        "worker": worker,
        "add, p50 ms": statistics.median(adding),
        "begins after, p50 ms": statistics.median(waited),
        "p95 ms": waited[int(0.95 * JOBS)],
        "worst ms": waited[-1],
        "limit ms": LIMIT_MS,
        "jobs/s": many,
    }


@contextlib.contextmanager
def _worker(worker: str, workspace: lakeward.Workspace, home: Path) -> Iterator[None]:
    if worker.startswith("in the same process"):
        if "looks" in worker:
            connector.WorkspaceConnector._session = _nothing_is_heard  # type: ignore[method-assign]
        with InProcessWorker(workspace):
            yield
        return
    command = [sys.executable, "-m", "lakeward.cli.app", "worker", "--home", str(home)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2 if worker.startswith("two") else 1)]
    try:
        for each in processes:
            assert each.stdout is not None
            each.stdout.readline()
        yield
    finally:
        for each in processes:
            each.terminate()
            each.wait(60)


@contextlib.asynccontextmanager
async def _nothing_is_heard(_: object) -> Iterator[None]:  # type: ignore[misc]
    yield None


def _ended(queue: Jobs, job_id: int) -> Job:
    while not (job := queue.get(job_id)).ended:
        time.sleep(0.005)
    return job


def main() -> str:
    """Run all and return the table."""
    title = f"Jobs: {JOBS} one after the other, then {MANY} at once, two at a time for each worker"
    return table(title, [in_fresh_process(begun, worker) for worker in WORKERS])


if __name__ == "__main__":
    print(main())
