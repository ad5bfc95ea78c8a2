"""Finds jobs whose worker died, and gives them back to the queue; and lets in those whose time has come.

A worker on this machine is known to be dead by its process, at once; one elsewhere by its silence. A wrong guess costs
work and no data: both go on through the ledger, and what one has decided the other finds there.
"""

from __future__ import annotations

import json
import logging

import sqlalchemy

from lakeward.control.db import Database, Queries
from lakeward.control.leases import Owner
from lakeward.jobs.connector import ANY_JOB
from lakeward.jobs.queue import QUERIES as QUEUE

QUERIES = Queries.beside(__file__)

SILENT_SECONDS = 30.0
"""A worker that was not heard of for so long is taken for dead."""

log = logging.getLogger("lakeward.jobs")


class Stalled:
    """Looks after the jobs of dead workers.

    Args:
        database: of the workspace.
        attempts: a job that so many workers died of is given up: it may be what they died of.
    """

    def __init__(self, database: Database, attempts: int) -> None:
        self._database = database
        self._attempts = attempts

    def look(self) -> list[int]:
        """Give back what dead workers ran, and return the numbers of those jobs."""
        found = []
        for row in self._database.fetch(QUERIES["running"], {"seconds": SILENT_SECONDS}):
            owner = Owner.from_json(row["owner"]) if row["owner"] else None
            if row["silent"] or (owner is not None and owner.is_dead()):
                with self._database.transaction() as connection:
                    if self._take(connection, row, owner):
                        found.append(int(row["id"]))
        return found

    def let_in(self) -> None:
        """Let in the jobs whose time has come, and tell the workers."""
        if self._database.fetch(QUERIES["due"]):
            self._database.fetch(QUEUE["wake"], {"message": ANY_JOB})

    def _take(self, connection: sqlalchemy.Connection, row: sqlalchemy.RowMapping, owner: Owner | None) -> bool:
        job_id = row["id"]
        if not connection.execute(QUERIES["hold"], {"id": job_id, "worker": row["worker_id"]}).scalar():
            return False
        deaths, of = (row["deaths"] or 0) + 1, f" ({owner})" if owner is not None else ""
        error = {
            "error": "WorkerDied",
            "message": f"the worker of job {job_id}{of} died, {deaths} time{'s' if deaths > 1 else ''} so far",
            "safe": "every committed version stands; what was not decided is removed",
            "next_steps": [f"lakeward job log {job_id}"],
            "exit_code": 1,
            "fields": {"job": job_id, "deaths": deaths},
        }
        connection.execute(QUERIES["died"], {"id": job_id, "error": json.dumps(error)})
        if row["abort_requested"]:
            connection.execute(QUERIES["give_up"], {"id": job_id, "status": "aborted"})
            line = f"its worker{of} died; it was to be cancelled, and is"
        elif deaths >= self._attempts:
            connection.execute(QUERIES["give_up"], {"id": job_id, "status": "failed"})
            line = f"its worker{of} died, as {deaths - 1} before; it is not tried again"
        else:
            connection.execute(QUERIES["give_back"], {"id": job_id})
            connection.execute(QUEUE["wake"], {"message": ANY_JOB})
            line = f"its worker{of} died; another one goes on"
        connection.execute(QUERIES["line"], {"id": job_id, "line": line})
        log.warning("job %s: %s", job_id, line)
        return True
