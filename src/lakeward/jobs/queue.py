"""The queue of a workspace: jobs are added, looked at, cancelled and begun again.

Nothing here runs a job: workers do (`worker`), in this process, another one, or on another machine. So whoever adds a
job gets it back at once, and looks at it later by its number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy
from procrastinate import exceptions, jobs, manager

from lakeward.access.guard import may, principal, require
from lakeward.access.principal import OWNER, Place, Principal
from lakeward.control.audit import audit
from lakeward.control.db import Queries
from lakeward.control.job_schema import bring_up_to_date
from lakeward.control.leases import Owner
from lakeward.errors import ConflictError, Forbidden, UnknownObject, UsageError
from lakeward.jobs.connector import ANY_JOB, WorkspaceConnector
from lakeward.jobs.job import CANCELLED, ENDED, STATUS_OF, STATUSES, WAITING, Job, LogLine
from lakeward.jobs.kind import JobOptions, checked_options, short_key
from lakeward.jobs.known_kinds import kind_named
from lakeward.wiring.actor import actor
from lakeward.wiring.workspace import Workspace

QUERIES = Queries.beside(__file__)

BEHIND = -1_000_000
"""The priority of what is to wait for its time: with another one's lock, it would hold up what can be done before."""


class Jobs:
    """The queue of a workspace.

    Args:
        workspace: an open one; jobs that it runs see it, too.

    Example:
        >>> job = Jobs(ws).add("build", {"pipelines": ["orders_daily"]})  # doctest: +SKIP
        >>> Jobs(ws).get(job.id).status  # doctest: +SKIP
        'waiting'
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._database = workspace.database
        bring_up_to_date(self._database)
        self.connector = WorkspaceConnector(self._database)
        self.manager = manager.JobManager(self.connector)

    # Adding ----------------------------------------------------------------------------------------------------------

    def add(
        self,
        kind: str,
        options: Mapping[str, Any] | JobOptions | None = None,
        *,
        by: str | None = None,
        run_at: datetime | None = None,
        key: str | None = None,
    ) -> Job:
        """Queue a job. If one with its key waits already, that one is returned, and nothing is added.

        Args:
            kind: one of `job_kinds`.
            options: as the kind's model has them.
            by: who asks for it, for people; None: who acts.
            run_at: it is not started before; None: at once.
            key: one with this key that waits is enough; None: as the kind has it, by default one of each kind with
                the same options.

        Raises:
            UnknownObject: no such kind or option, or what it is to work on is not there.
            UsageError: an option is not what it should be, or `run_at` has no time zone.
            Forbidden: who acts may not do this.
            ConflictError: one with its key waits already, and who acts may not see it: it is somebody else's.
        """
        found = kind_named(kind)
        given = options.model_dump() if isinstance(options, JobOptions) else dict(options or {})
        checked = checked_options(found, given)
        place = found.place(self.workspace, checked)
        require(found.action, place)
        who = principal()
        with self._database.transaction() as connection:
            job_id, added = self.add_within(
                connection,
                kind,
                checked,
                by=by or who.name or actor(),
                who=who,
                run_at=run_at,
                key=key,
            )
            if added:
                after = {"kind": kind, "options": checked.model_dump(mode="json")}
                audit(connection, actor(), "job.add", f"job {job_id}", None, after, place)
        try:
            return self.get(job_id)
        except UnknownObject:
            raise ConflictError(
                f"somebody else's job {job_id} has the same key, and waits already: one {kind} is enough",
                safe="nothing was queued; that job is begun when a worker is free and its time has come",
                next_step=f"who has a role in the whole workspace can look at it: `lakeward job show {job_id}`",
                job=job_id,
                kind=kind,
            ) from None

    def add_within(
        self,
        connection: sqlalchemy.Connection,
        kind: str,
        options: JobOptions,
        *,
        by: str,
        who: Principal = OWNER,
        run_at: datetime | None = None,
        key: str | None = None,
    ) -> tuple[int, bool]:
        """Queue a job in a transaction of the caller's, who has checked all; see `add`.

        Returns:
            Its number, and whether it was added; else one with its key waits already.
        """
        found = kind_named(kind)
        document = options.model_dump(mode="json")
        _check_text(document, kind)
        if run_at is not None and run_at.utcoffset() is None:
            raise UsageError(f"job {kind}: run_at {run_at} has no time zone", safe="nothing was queued")
        queueing_key = short_key(key if key is not None else found.key(options))
        job = jobs.Job(
            id=None,
            queue=found.queue,
            task_name=kind,
            task_kwargs={"options": document},
            lock=short_key(found.lock(options)),
            queueing_lock=queueing_key,
            scheduled_at=run_at,
            priority=0 if run_at is None else BEHIND,
        )
        while True:
            try:
                with connection.begin_nested():
                    job_id = self.manager.defer_job(job, connection=connection).id
            except exceptions.AlreadyEnqueued:
                waiting = connection.execute(QUERIES["waiting"], {"key": queueing_key}).scalar()
                if waiting is None:
                    continue  # a worker has taken it in this instant
                return int(waiting), False
            connection.execute(
                QUERIES["note"], {"id": job_id, "by": by, "principal": who.name or None, "token": who.token}
            )
            assert job_id is not None
            return job_id, True

    # Looking ---------------------------------------------------------------------------------------------------------

    def get(self, job_id: int) -> Job:
        """Return a job as it stands now.

        Raises:
            UnknownObject: there is none of that number, or it ended long ago and was forgotten.
        """
        found = self._jobs(id=job_id, most=1)
        if not found:
            raise UnknownObject(
                f"there is no job {job_id}", safe="nothing was changed", next_step="lakeward job list", job=job_id
            )
        return found[0]

    def list(
        self,
        *,
        statuses: Sequence[str] = (),
        kind: str | None = None,
        by: str | None = None,
        before: int | None = None,
        most: int = 100,
    ) -> Sequence[Job]:
        """Return jobs, newest first.

        Args:
            statuses: of these statuses only, of `STATUSES`; none: all.
            kind: of this kind only.
            by: asked for by this one only.
            before: only those older than this number: the last one of the page before.
            most: so many at most.

        Raises:
            UnknownObject: there is no such status or kind.
        """
        for status in statuses:
            if status not in STATUSES:
                raise UnknownObject.among("status of a job", status, STATUSES)
        if kind is not None:
            kind_named(kind)
        theirs = [name for name, ours in STATUS_OF.items() if ours in statuses] if statuses else None
        return self._jobs(statuses=theirs, kind=kind, by=by, before=before, most=most)

    def log(self, job_id: int, *, after: int = 0, most: int = 1000) -> Sequence[LogLine]:
        """Return lines of a job's log, oldest first.

        Args:
            job_id: whose.
            after: only those after this line: the last one that is known.
            most: so many at most.

        Raises:
            UnknownObject: there is no such job.
        """
        self.get(job_id)
        rows = self._database.fetch(QUERIES["log"], {"id": job_id, "after": after, "most": most})
        return [LogLine(**row) for row in rows]

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many jobs there are, by kind and status."""
        found: dict[tuple[str, str], int] = {}
        for row in self._database.fetch(QUERIES["counts"]):
            each = (row["kind"], STATUS_OF[row["status"]])
            found[each] = found.get(each, 0) + row["jobs"]
        return found

    # Changing --------------------------------------------------------------------------------------------------------

    def cancel(self, job_id: int) -> Job:
        """Cancel a job: one that waits never runs, one that runs is asked to end. One that has ended stays as it is.

        Raises:
            UnknownObject: there is no such job.
            Forbidden: who acts may not do what it does.
        """
        job, place = self._permitted(job_id)
        with self._database.transaction() as connection:
            if self.manager.cancel_job_by_id(job_id, abort=True, connection=connection):
                before = {"kind": job.kind, "status": job.status}
                audit(connection, actor(), "job.cancel", f"job {job_id}", before, None, place)
        return self.get(job_id)

    def retry(self, job_id: int) -> Job:
        """Queue a job again that failed or was cancelled; of one that waits for its next try, make that now.

        Raises:
            UnknownObject: there is no such job.
            ConflictError: it runs, it has succeeded, or another one that does the same waits already.
            Forbidden: who acts may not do what it does.
        """
        job, place = self._permitted(job_id)
        try:
            with self._database.transaction() as connection:
                (row,) = connection.execute(QUERIES["lock"], {"id": job_id}).mappings()
                status = STATUS_OF[row["status"]]
                if status not in (WAITING, *ENDED) or status == "succeeded":
                    raise ConflictError(
                        f"job {job_id} ({job.kind}) {'runs' if status == 'running' else 'has succeeded'}",
                        safe="nothing was changed",
                        next_step=f"lakeward job add {job.kind} … queues another one",
                        job=job_id,
                    )
                if status != WAITING:
                    who = principal()
                    by = {"principal": who.name, "token": who.token}
                    connection.execute(QUERIES["again"], {"id": job_id, **by})
                connection.execute(QUERIES["requeue"], {"id": job_id})
                connection.execute(QUERIES["wake"], {"message": ANY_JOB})
                before = {"kind": job.kind, "status": status}
                audit(connection, actor(), "job.retry", f"job {job_id}", before, {"status": WAITING}, place)
        except sqlalchemy.exc.IntegrityError:
            raise ConflictError(
                f"job {job_id} ({job.kind}) is not needed: another one that does the same waits already",
                safe="nothing was changed",
                next_step=f"lakeward job list --kind {job.kind}",
                job=job_id,
            ) from None
        return self.get(job_id)

    def forget(self, days: float) -> None:
        """Remove jobs that ended longer ago than so many days, with their logs."""
        self._database.fetch(QUERIES["forget"], {"days": days})

    # -----------------------------------------------------------------------------------------------------------------

    def _permitted(self, job_id: int) -> tuple[Job, Place]:
        """Return a job that whoever acts may change, and where it works."""
        job = self.get(job_id)
        found = kind_named(job.kind)
        try:
            place = found.place(self.workspace, checked_options(found, job.options))
        except UsageError:
            # What it was to work on is gone by now, or this version knows other options.
            place = ()
        require(found.action, place)
        return job, place

    def _jobs(self, **asked: Any) -> Sequence[Job]:
        # Options name datasets. Who may not see all of the workspace sees the jobs that are their own, and with a token
        # for one place those of them that are about it.
        who = principal()
        mine = None if may("job.read") else who.name
        every = {"id": None, "before": None, "kind": None, "by": None, "statuses": None, "principal": mine, **asked}
        shown: list[Job] = []
        while True:
            found = [_job(row) for row in self._database.fetch(QUERIES["jobs"], every)]
            shown += [each for each in found if not who.within or self._inside(each)]
            if not who.within or len(found) < every["most"] or len(shown) >= every["most"]:
                return shown[: every["most"]]
            every["before"] = found[-1].id

    def _inside(self, job: Job) -> bool:
        """Say whether a job works where whoever acts has a role."""
        try:
            found = kind_named(job.kind)
            place = found.place(self.workspace, checked_options(found, job.options))
        except (Forbidden, UsageError):
            return False
        return principal().role_in(place) is not None


def _check_text(document: Mapping[str, Any], kind: str) -> None:
    if "\\u0000" in json.dumps(document):
        raise UsageError(f"job {kind}: an option holds the character NUL", safe="nothing was queued")


def _job(row: sqlalchemy.RowMapping) -> Job:
    status = STATUS_OF[row["status"]]
    ended = status in ENDED
    return Job(
        id=row["id"],
        kind=row["kind"],
        options=row["args"].get("options", {}),
        added_by=row["added_by"],
        principal=row["principal"],
        queue=row["queue"],
        status=status,
        key=row["key"],
        lock=row["lock"],
        run_at=row["run_at"],
        added_at=row["added_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        tries=row["tries"],
        cancelling=bool(row["abort_requested"]) and not ended,
        worker=str(Owner.from_json(row["owner"])) if row["owner"] else None,
        progress=row["progress"] or {},
        result=row["result"] if status != CANCELLED else None,
        error=row["error"],
    )
