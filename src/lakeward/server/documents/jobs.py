"""Jobs: queued work, how far it is, and what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, Field

from lakeward.server.documents.document import Document, Request, example

JOB: dict[str, Any] = {
    "id": 17,
    "kind": "build",
    "options": {"pipelines": ["orders_daily"], "full": False},
    "added_by": "ana",
    "principal": None,
    "queue": "build",
    "status": "running",
    "key": "build …",
    "lock": "build orders_daily",
    "run_at": None,
    "added_at": "2026-12-01T06:00:00+00:00",
    "started_at": "2026-12-01T06:00:00+00:00",
    "ended_at": None,
    "tries": 0,
    "cancelling": False,
    "worker": "host, process 4711",
    "progress": {"orders_daily: main.sales.orders": {"done": 65536, "total": None, "unit": "rows"}},
    "result": None,
    "error": None,
}
LINE: dict[str, Any] = {"id": 3, "at": "2026-12-01T06:00:01+00:00", "level": "info", "line": "pipeline orders_daily: …"}


class Job(Document):
    """A job as it stands."""

    model_config = example(**JOB)

    id: int
    kind: str
    options: dict[str, Any]
    added_by: str
    principal: str | None = Field(description="as whom it runs; null: as the workspace's owner")
    queue: str = Field(description="which workers take it")
    status: str = Field(description="waiting, running, succeeded, failed or cancelled")
    key: str | None = Field(description="one with this key that waits is enough")
    lock: str | None = Field(description="one with this lock runs at a time")
    run_at: datetime | None = Field(description="it is not started before")
    added_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    tries: int = Field(description="how often it has ended or was given back")
    cancelling: bool = Field(description="whether it runs and was asked to end")
    worker: str | None = Field(description="the process that runs it, or did")
    progress: dict[str, Any] = Field(description="how far each thing is that it does")
    result: dict[str, Any] | None
    error: dict[str, Any] | None


class JobPage(Document):
    """Jobs, newest first."""

    model_config = example(jobs=[JOB], next=17)

    jobs: list[Job]
    next: int | None = Field(description="the `page` that follows; null: there is none")


class NewJob(Request):
    """A job to queue."""

    model_config = example(kind="build", options={"pipelines": ["orders_daily"]})

    kind: str = Field(description="see `GET /jobs/kinds`")
    options: dict[str, Any] = Field({}, description="as the kind has them")
    run_at: AwareDatetime | None = Field(None, description="don't start it before")
    key: str | None = Field(
        None, min_length=1, description="one with this key that waits is enough; null: as the kind says"
    )


class JobKind(Document):
    """A kind of job: what it does, and the JSON schema of its options."""

    model_config = example(
        name="recover",
        about="Finish or remove what processes that died left behind.",
        queue="upkeep",
        action="ledger.recover",
        options={"type": "object", "properties": {}},
    )

    name: str
    about: str
    queue: str
    action: str = Field(description="what one has to be allowed to do")
    options: dict[str, Any]


class JobKindList(Document):
    """Every kind of job."""

    model_config = example(kinds=[])

    kinds: list[JobKind]


class LogLine(Document):
    """A line of a job's log."""

    model_config = example(**LINE)

    id: int
    at: datetime
    level: str
    line: str


class JobLog(Document):
    """Lines of a job's log, oldest first."""

    model_config = example(lines=[LINE], last=3)

    lines: list[LogLine]
    last: int = Field(description="give it as `after`, for the lines behind these")


class Queued(Document):
    """A job that was queued, or waited already."""

    model_config = example(job=17, status="waiting", url="/api/v1/jobs/17")

    job: int
    status: str
    url: str = Field(description="where it is shown; with /events behind it, followed")
