"""A worker: takes jobs from the queue of a workspace and runs them, several at a time, until it is told to end.

Fetching, heartbeats and the hearing of new jobs are procrastinate's, on an event loop; jobs run in threads. Beside it,
one thread keeps house: it gives back what dead workers ran, and queues what is due by time or by new versions. All of
that any number of workers may do at once: whatever is decided, Postgres decides.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType

import procrastinate
from procrastinate import worker as queue_worker

from lakeward.access.guard import itself
from lakeward.clock import Faults, NoFaults, SystemClock
from lakeward.errors import DatabaseUnavailable, LakewardError, UnknownObject
from lakeward.jobs.connector import WorkspaceConnector
from lakeward.jobs.known_kinds import job_kinds
from lakeward.jobs.queue import Jobs
from lakeward.jobs.running import Running, WhenAsked
from lakeward.jobs.schedules import Schedules
from lakeward.jobs.stalled import SILENT_SECONDS, Stalled
from lakeward.jobs.telling import JobLog
from lakeward.wiring.workspace import Workspace

HOUSE_SECONDS = 1.0
"""How often a worker looks after what is due, and after dead workers."""

HEARTBEAT_SECONDS = 5.0
POLL_SECONDS = 5.0
"""How often it looks for jobs and for those to cancel, where nothing was heard."""

FORGET_SECONDS = 3600.0
"""How often jobs are removed that ended long ago."""

AGAIN_SECONDS = 2.0
"""After how long a worker whose Postgres went away tries to go on."""

log = logging.getLogger("lakeward.jobs")


class Worker:
    """Runs the jobs of a workspace.

    Args:
        workspace: an open one.
        width: how many jobs at a time; None: the setting `jobs.width`.
        queues: only jobs of these queues; none: all.
        once: end when nothing waits that could be begun.
        faults: injected by tests.

    Raises:
        UnknownObject: there is no such queue.
        SettingsError: a schedule of the settings is not what it should be.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        width: int | None = None,
        queues: Sequence[str] = (),
        once: bool = False,
        faults: Faults | None = None,
    ) -> None:
        self.workspace = workspace
        self.settings = workspace.settings.values.jobs
        self.width = width or self.settings.width
        known = sorted({kind.queue for kind in job_kinds().values()})
        for each in queues:
            if each not in known:
                raise UnknownObject.among("queue", each, known, queue=each)
        self._queues = list(queues) or None
        self._once = once
        self._faults = faults or NoFaults()
        self.queue = Jobs(workspace)
        self._stalled = Stalled(workspace.database, self.settings.attempts)
        self._schedules = Schedules(self.queue)
        self._clock = SystemClock()
        self._forgot_at: float | None = None
        self._ending = threading.Event()
        self.begun, self._known = 0, -1
        """How many jobs it has begun so far."""
        self._running: tuple[asyncio.AbstractEventLoop, queue_worker.Worker] | None = None

    def run(self) -> None:
        """Run jobs until `stop` is called, or, with `once`, until none is left.

        When Postgres goes away, it waits for it.
        """
        handler = JobLog()
        logging.getLogger("lakeward").addHandler(handler)
        logging.getLogger(queue_worker.__name__).addFilter(_not_of_one_job)
        try:
            while not self._ending.is_set():
                try:
                    asyncio.run(self._serve())
                except DatabaseUnavailable as error:
                    if self._once:
                        raise
                    log.warning("the worker waits for Postgres: %s", error)
                if self._once:
                    return
                self._ending.wait(AGAIN_SECONDS)
        finally:
            logging.getLogger("lakeward").removeHandler(handler)

    def stop(self) -> None:
        """Take no more jobs, and end when those that run have ended or, after `jobs.stop_seconds`, were given back.

        May be called from any thread, and from a signal handler.
        """
        self._ending.set()
        running = self._running
        if running is not None:
            loop, worker = running
            # A signal handler runs within the loop's own thread, which it would not wake by itself.
            with suppress(RuntimeError):  # the loop has ended in this instant
                loop.call_soon_threadsafe(worker.stop)

    def keep_house(self) -> None:
        """Look once after dead workers and what is due, as the workspace's owner."""
        with itself():
            for each in self._chores():
                try:
                    each()
                except LakewardError as error:
                    log.warning("%s", error)

    def _chores(self) -> Sequence[Callable[[], object]]:
        return (
            self._stalled.look,
            self._stalled.let_in,
            self._schedules.look,
            self._schedules.look_for_changes,
            self._forget,
        )

    def _forget(self) -> None:
        now = self._clock.monotonic()
        if self._forgot_at is None or now - self._forgot_at >= FORGET_SECONDS:
            self._forgot_at = now
            self.queue.forget(self.settings.keep_days)

    async def _serve(self) -> None:
        connector = WorkspaceConnector(self.workspace.database)
        try:
            with ThreadPoolExecutor(self.width, thread_name_prefix="lakeward-job") as threads:
                loop = asyncio.get_running_loop()
                loop.set_default_executor(threads)
                worker = queue_worker.Worker(
                    self._app(connector),
                    queues=self._queues,
                    concurrency=self.width,
                    wait=not self._once,
                    listen_notify=not self._once,
                    fetch_job_polling_interval=POLL_SECONDS,
                    abort_job_polling_interval=POLL_SECONDS,
                    shutdown_graceful_timeout=self.settings.stop_seconds,
                    install_signal_handlers=False,
                    update_heartbeat_interval=HEARTBEAT_SECONDS,
                    stalled_worker_timeout=SILENT_SECONDS,
                )
                self._running = (loop, worker)
                if self._once:
                    self.keep_house()
                    self._known = -1
                    # What waited for another's lock can be begun when that one has ended.
                    while self._new_ones():
                        await worker.run()  # type: ignore[no-untyped-call]
                    return
                with _House(self.keep_house):
                    if not self._ending.is_set():
                        await worker.run()  # type: ignore[no-untyped-call]
        finally:
            self._running = None
            connector.close()

    def _one_begun(self) -> None:
        self.begun += 1

    def _new_ones(self) -> bool:
        """Say whether a job was begun since the last time that this was asked; the first time, yes."""
        known, self._known = self._known, self.begun
        return known != self.begun

    def _app(self, connector: WorkspaceConnector) -> procrastinate.App:
        app = procrastinate.App(connector=connector)
        for name, kind in job_kinds().items():
            run = Running(self.workspace, kind, self.settings.attempts, self._clock, self._faults, self._one_begun)
            app.task(name=name, queue=kind.queue, pass_context=True, retry=WhenAsked())(run)
        return app


class InProcessWorker:
    """A worker in a thread of this process, for as long as a block goes on: beside a server, or in a test.

    Example:
        >>> with InProcessWorker(ws):  # doctest: +SKIP
        ...     Jobs(ws).add("build")
    """

    def __init__(self, workspace: Workspace, *, width: int | None = None, queues: Sequence[str] = ()) -> None:
        self.worker = Worker(workspace, width=width, queues=queues)
        self._thread = threading.Thread(target=self.worker.run, name="lakeward-worker", daemon=True)

    def __enter__(self) -> InProcessWorker:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.worker.stop()
        self._thread.join()


class _House:
    """Keeps house again and again in a thread, while a block goes on."""

    def __init__(self, keep: Callable[[], None]) -> None:
        self._keep = keep
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lakeward-jobs-house", daemon=True)

    def _run(self) -> None:
        while True:
            self._keep()
            if self._ended.wait(HOUSE_SECONDS):
                return

    def __enter__(self) -> _House:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()


def _not_of_one_job(record: logging.LogRecord) -> bool:
    """Leave out what procrastinate says of single jobs, arguments and tracebacks included: their own logs have it."""
    return not str(getattr(record, "action", "")).startswith("job_")
