"""Runs one job in a worker's thread, and keeps what came of it.

The result is kept before procrastinate is told that the job has ended. If the worker dies in between, the next one
finds it, and has nothing left to do but to tell.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from procrastinate import exceptions, job_context, jobs, retry

from lakeward.access.guard import acting
from lakeward.clock import Clock, Faults
from lakeward.control.db import Queries
from lakeward.control.leases import Owner
from lakeward.errors import LakewardError, Stopped
from lakeward.happenings import happening
from lakeward.jobs.acting import principal_of
from lakeward.jobs.kind import JobKind, checked_options
from lakeward.jobs.queue import BEHIND
from lakeward.jobs.telling import Telling
from lakeward.jobs.transient import passes, wait_seconds
from lakeward.stopping import Stop
from lakeward.wiring.workspace import Workspace

QUERIES = Queries.beside(__file__)

log = logging.getLogger("lakeward.jobs")


class Again(Exception):
    """A job is to be tried again.

    Args:
        seconds: after how long.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"again in {seconds} s")
        self.seconds = seconds


class WhenAsked(retry.BaseRetryStrategy):
    """Lets procrastinate try a job again when, and only when, `Running` says so."""

    def get_retry_decision(self, *, exception: BaseException, job: jobs.Job) -> retry.RetryDecision | None:
        """Return when; None: never."""
        if not isinstance(exception, Again):
            return None
        if not exception.seconds:
            return retry.RetryDecision()
        # What waits for its time is not to hold up others of its lock; see `queue.BEHIND`.
        return retry.RetryDecision(retry_in={"milliseconds": int(exception.seconds * 1000)}, priority=BEHIND)


class Running:
    """Runs the jobs of one kind.

    Args:
        workspace: what they work on.
        kind: of the jobs.
        attempts: so often is a job tried whose errors may pass.
        clock: tells how often to keep what is told.
        faults: injected by tests.
        begun: is called when one begins.
    """

    def __init__(
        self,
        workspace: Workspace,
        kind: JobKind[Any],
        attempts: int,
        clock: Clock,
        faults: Faults,
        begun: Callable[[], None],
    ) -> None:
        self._workspace = workspace
        self._database = workspace.database
        self._kind = kind
        self._attempts = attempts
        self._clock = clock
        self._faults = faults
        self._begun = begun
        self._owner = json.dumps(Owner.current().to_json())

    def __call__(self, context: job_context.JobContext, /, options: Mapping[str, Any], **_: Any) -> None:
        """Run one.

        Raises:
            Again: it is to be tried again, or was given back.
            JobAborted: it was cancelled.
            Exception: it failed.
        """
        job_id = context.job.id
        assert job_id is not None
        self._begun()
        begun = self._database.fetch(QUERIES["begin"], {"id": job_id, "owner": self._owner})
        if not begun or begun[0]["result"] is not None:
            return
        state = begun[0]
        stop = Stop(context.should_abort)
        with Telling(self._database, job_id, context.job.attempts, self._owner, self._clock) as telling:
            telling.line(f"{self._kind.name} begins, try {context.job.attempts + 1}, for {state['added_by']}")
            self._faults.at("job:begun")
            try:
                checked = checked_options(self._kind, options)
                who = principal_of(self._workspace, state["principal"], state["token"])
                about = happening("job", job=str(job_id), task=self._kind.name)
                with about, acting(who), stop.heard():
                    result = self._kind.run(self._workspace, checked, telling)
            except Stopped:
                raise self._stopped(context, telling) from None
            except LakewardError as error:
                raise self._failed(job_id, error, telling, state["failures"]) from error
            except Exception as error:
                self._keep("failed", job_id, _unexpected(error), counted=1)
                telling.line(f"unexpected {type(error).__name__}", "error")
                raise
            self._faults.at("job:ran")
            self._keep("succeeded", job_id, result)
            telling.line(f"{self._kind.name} is done")
        self._faults.at("job:kept")

    def _stopped(self, context: job_context.JobContext, telling: Telling) -> Exception:
        if context.abort_reason() is job_context.AbortReason.SHUTDOWN:
            telling.line("given back: the worker is to end")
            return Again(0)
        telling.line("cancelled")
        return exceptions.JobAborted("cancelled")

    def _failed(self, job_id: int, error: LakewardError, telling: Telling, failures: int) -> Exception:
        self._keep("failed", job_id, {**error.to_json(), "notes": list(getattr(error, "__notes__", ()))}, counted=1)
        telling.line(error.message, "error")
        if not passes(error) or failures + 1 >= self._attempts:
            return error
        seconds = wait_seconds(failures + 1)
        telling.line(f"tried again in {seconds:g} s: this may pass", "warning")
        return Again(seconds)

    def _keep(self, name: str, job_id: int, document: Mapping[str, Any], **more: object) -> None:
        text = json.dumps(document, ensure_ascii=False, default=str).replace("\\u0000", "␀")
        self._database.fetch(QUERIES[name], {"id": job_id, "owner": self._owner, "document": text, **more})


def _unexpected(error: Exception) -> dict[str, object]:
    # Its text may be anything, a secret too.
    return {
        "error": "Unexpected",
        "message": f"unexpected {type(error).__name__}; the worker's log has more",
        "safe": "every committed version stands",
        "next_steps": [],
        "exit_code": 1,
        "fields": {},
        "notes": [],
    }
