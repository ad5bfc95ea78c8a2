"""Flips, and comparisons of the arms."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lakeward.server.documents.document import Destructive, Document, Explained, Request, Waiting, example

STAGE: dict[str, Any] = {
    "name": "switch",
    "about": "the other arm serves",
    "done": False,
    "automatic": True,
    "actions": [],
    "undo": [],
}
STATUS: dict[str, Any] = {
    "dataset": "main.sales.orders",
    "mode": "dual",
    "primary": "postgres",
    "mirror": "iceberg",
    "epoch": 2,
    "to": "iceberg",
    "outcome": None,
    "started_by": "ana",
    "owner": None,
    "lag": {"arm": "iceberg", "holds": 3, "head": 3, "versions": 0, "rows": 0},
    "stages": [STAGE],
    "events": [],
    "next_stage": "switch",
    "parity": None,
}


class Stage(Document):
    """A stage of a flip: whether it is done, what it would do, and what it would take to undo it."""

    model_config = example(**STAGE)

    name: str
    about: str
    done: bool
    automatic: bool = Field(description="whether a flip runs it unasked")
    actions: list[str]
    undo: list[str]


class FlipEvent(Document):
    """What happened in a flip."""

    at: datetime
    stage: str
    event: str = Field(description="started, done, failed or undone")
    actor: str
    seconds: float | None
    details: dict[str, Any]


class Flip(Document):
    """Where the flip of a dataset stands."""

    model_config = example(**STATUS)

    dataset: str
    mode: str
    primary: str = Field(description="the arm that serves")
    mirror: str | None = Field(description="the arm that gets every write, too")
    epoch: int
    to: str | None = Field(description="the arm that the newest flip goes to; null: there was none")
    outcome: str | None = Field(description="completed, reverted or cancelled; null: it goes on, or there was none")
    started_by: str | None
    owner: str | None = Field(description="the process that works on it")
    lag: dict[str, Any] | None = Field(description="how far the arm that does not serve is behind")
    stages: list[Stage] = Field(description="in order; none where no flip goes on")
    events: list[FlipEvent] = Field(description="oldest first")
    next_stage: str | None
    parity: dict[str, Any] | None = Field(description="the newest comparison of the arms")


class FlipPage(Document):
    """Where the flips of datasets stand, by name."""

    model_config = example(flips=[STATUS], next=None)

    flips: list[Flip]
    next: str | None = Field(description="the `page` that follows; null: there is none")


class FlipSteps(Flip):
    """What stages did, and where the flip stands now."""

    model_config = example(**STATUS, steps=[{"stage": "switch", "seconds": 0.021, "epoch": 3}])

    steps: list[dict[str, Any]] = Field(description="what each stage that ran has found")


class FlipUndone(Flip):
    """What was undone, and where the flip stands now."""

    model_config = example(**STATUS, undone=["let the postgres arm serve main.sales.orders"])

    undone: list[str]


class FlipCheck(Document):
    """What a flip would do to the real values, and all else that it needs."""

    model_config = example(
        dataset="main.sales.orders",
        source="postgres",
        to="iceberg",
        ok=True,
        certificate={"version": 3, "rows": 1200, "columns": []},
        abilities=[{"name": "catalog", "ok": True, "found": "it answers", "next_step": None}],
        expectation={"seconds": 2.5, "basis": "a former flip"},
    )

    dataset: str
    source: str
    to: str
    ok: bool = Field(description="whether it can be flipped")
    certificate: dict[str, Any] | None = Field(description="what would become of each column; null: it has no rows yet")
    abilities: list[dict[str, Any]] = Field(description="what else has to be as it should")
    expectation: dict[str, Any] | None = Field(description="how long the first copy will take")


class FlipTo(Request):
    """To which arm."""

    model_config = example(to="iceberg")

    to: str | None = Field(None, description="postgres or iceberg; null: the one that does not serve")


class FlipStart(Explained, Waiting):
    """How far a flip goes, and how fast."""

    model_config = example(to="iceberg", until="mirror", dry_run=True)

    to: str | None = Field(None, description="postgres or iceberg; null: the one that does not serve")
    until: str | None = Field(None, description="the last stage to run; null: switch")
    rows_per_second: int | None = Field(None, ge=1, description="read no faster in the backfill")
    max_lag: int = Field(100, ge=0, description="refuse to switch a mirror that is behind by more versions")


class FlipSwitch(Explained):
    """How a dataset is switched."""

    model_config = example(dry_run=True)

    max_lag: int = Field(100, ge=0, description="refuse to switch a mirror that is behind by more versions")


class FlipBack(Explained):
    """How the arm that served before gets to serve again."""

    model_config = example(dry_run=True)


class FlipVerify(Waiting):
    """Whether the answer waits for it."""

    model_config = example(wait=True)


class FlipComplete(Destructive, Waiting):
    """The end of a flip, and of its old rows."""

    model_config = example(confirm="main.sales.orders")


class FlipEnd(Destructive):
    """The end of a flip."""

    model_config = example(confirm="main.sales.orders")


class FlipCanary(Request):
    """How long both arms are watched, and what they have to keep to."""

    model_config = example(seconds=60, max_mismatch=0, promote=False)

    seconds: float = Field(gt=0, le=7 * 86400, allow_inf_nan=False, description="for how long")
    max_mismatch: int = Field(0, ge=0, description="so many comparisons may find a difference")
    max_latency_ratio: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="how many times as long the new arm's median read may take"
    )
    min_reads: int = Field(1, ge=1, description="so many reads have to be compared")
    promote: bool = Field(True, description="switch when all is well")


class FlipResync(Destructive):
    """How the copy that does not serve is made anew."""

    model_config = example(confirm="main.sales.orders")

    rows_per_second: int | None = Field(None, ge=1, description="read no faster than this")


class Resynced(Document):
    """The new copy of a dataset."""

    model_config = example(dataset="main.sales.orders", version=3, rows=1200)

    dataset: str
    version: int
    rows: int
