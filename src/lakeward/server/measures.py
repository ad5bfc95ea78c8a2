"""The numbers of a server, as Prometheus reads them: requests, its process at work, and how its workspace stands.

Each application has a registry of its own. What is counted costs a request some microseconds; what is asked of the
database when the numbers are read is one question, asked at most once in `FRESH_SECONDS`, however many read them.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

import lakeward
from lakeward.access.guard import carried
from lakeward.control.standing import Standing, standing
from lakeward.errors import LakewardError
from lakeward.happenings import Happening
from lakeward.jobs.queue import Jobs
from lakeward.wiring.following import FollowState
from lakeward.wiring.workspace import Workspace

FRESH_SECONDS = 5.0
LAG_SECONDS = 60.0
"""How old what followed sources say may be: they are other people's servers."""

REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
WORK_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400)

STANDING = {
    "datasets": "Datasets that there are.",
    "diverged": "Datasets that another engine has written to.",
    "behind": "Datasets whose mirror does not hold the newest version.",
    "stale": "Datasets built from older versions of their sources than there are.",
    "open": "Transactions that are neither committed nor aborted.",
    "oldest_open_seconds": "Age of the oldest open transaction.",
    "abandoned": "Open transactions whose owner was silent for longer than its lease.",
    "unpublished": "Committed versions that other engines are not shown yet.",
    "flips": "Flips that go on.",
}
"""What is told of how the workspace stands, by the fields of `Standing`."""

_NAMES = {
    **{name: f"lakeward_datasets_{name}" for name in ("diverged", "behind", "stale")},
    "datasets": "lakeward_datasets",
    "open": "lakeward_transactions_open",
    "oldest_open_seconds": "lakeward_transactions_oldest_open_seconds",
    "abandoned": "lakeward_transactions_abandoned",
    "unpublished": "lakeward_versions_unpublished",
    "flips": "lakeward_flips_active",
}
_LABEL = re.compile(r'(\w+)="([^"]*)"')

log = logging.getLogger("lakeward.metrics")


class Measures:
    """All numbers of one application. It listens to what happens: see `lakeward.happenings.listen`.

    Args:
        workspace: what is served; None: there is none, as where only the API is described.
        streams: says how many streams of rows are open.
    """

    def __init__(self, workspace: Workspace | None, streams: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        # When each series began: one more of each, which nobody asks for.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._requests = Counter(
            "lakeward_http_requests", "Requests.", ("method", "route", "status"), registry=self.registry
        )
        self._request_seconds = Histogram(
            "lakeward_http_request_seconds",
            "How long requests took, with all of their answer.",
            ("method", "route"),
            buckets=REQUEST_BUCKETS,
            registry=self.registry,
        )
        open_streams = Gauge("lakeward_http_streams_open", "Streams of rows that are open.", registry=self.registry)
        open_streams.set_function(streams)
        labels: dict[str, tuple[str, ...]] = {
            "build": ("outcome",),
            "sync": ("outcome",),
            "follow.batch": ("outcome",),
            "job": ("outcome",),
            "write": ("outcome",),
            "flip.stage": ("stage", "outcome"),
            "flip.undo": ("stage", "outcome"),
        }
        self._work = {
            name: Histogram(
                f"lakeward_{name.replace('.', '_')}_seconds",
                f"How long each {name.replace('.', ' ')} took in this process.",
                names,
                buckets=WORK_BUCKETS,
                registry=self.registry,
            )
            for name, names in labels.items()
        }
        self._steps = Histogram(
            "lakeward_write_step_seconds",
            "How long each step of writes took in this process.",
            ("step",),
            buckets=WORK_BUCKETS,
            registry=self.registry,
        )
        about = Gauge("lakeward_info", "What runs.", ("version",), registry=self.registry)
        about.labels(lakeward.__version__).set(1)
        if workspace is not None:
            self.registry.register(_OfWorkspace(workspace))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._request_seconds.labels(method, route).observe(seconds)

    def begun(self, happening: Happening) -> None:
        """Hear that something begins."""

    def ended(self, happening: Happening) -> None:
        """Count what has ended."""
        outcome = "ok" if happening.error is None else "failed"
        name, _, step = happening.name.partition("write.")
        if not name and step:
            self._steps.labels(step).observe(happening.seconds)
            return
        measured = self._work.get(happening.name)
        if measured is not None:
            stage = (str(happening.facts["stage"]),) if "stage" in happening.facts else ()
            measured.labels(*stage, outcome).observe(happening.seconds)

    def text(self) -> bytes:
        """Return all of them, in Prometheus's text format."""
        return generate_latest(self.registry)


class _OfWorkspace:
    """What is known of a workspace when its numbers are read."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._asked = self._asked_lag = float("-inf")
        self._standing: Standing | None = None
        self._jobs: dict[tuple[str, str], int] = {}
        self._lag: list[FollowState] = []

    def describe(self) -> Iterator[Metric]:
        """Say nothing before it is read: the registry would read it to find out."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Read them."""
        yield from _counted(self._workspace.metrics())
        now = self._fresh()
        up = GaugeMetricFamily("lakeward_database_up", "Whether the database answers.")
        up.add_metric([], float(now is not None))
        yield up
        if now is not None:
            for field, about in STANDING.items():
                yield GaugeMetricFamily(_NAMES[field], about, value=float(getattr(now, field)))
            jobs = GaugeMetricFamily("lakeward_jobs", "Jobs that are kept.", labels=["kind", "status"])
            for (kind, status), number in self._jobs.items():
                jobs.add_metric([kind, status], number)
            yield jobs
        yield from self._lags()

    @cached_property
    def _queue(self) -> Jobs:
        return Jobs(self._workspace)

    def _fresh(self) -> Standing | None:
        with self._lock:
            if time.monotonic() - self._asked >= FRESH_SECONDS:
                try:
                    self._standing = standing(self._workspace.database)
                    self._jobs = self._queue.counts()
                except LakewardError as error:
                    log.warning("metrics are read while the database does not answer: %s", error)
                    self._standing = None
                self._asked = time.monotonic()
            return self._standing

    def _lags(self) -> Iterator[Metric]:
        with self._lock:
            due = self._standing is not None and time.monotonic() - self._asked_lag >= LAG_SECONDS
            if due:
                self._asked_lag = time.monotonic()
                # Beside: a source that hangs holds up nobody who reads numbers, which then are those of before.
                threading.Thread(target=carried(self._ask_lag), name="lakeward-lag", daemon=True).start()
            states = self._lag
        if states:
            lag = GaugeMetricFamily(
                "lakeward_followed_lag_bytes", "Bytes of its log that a source keeps.", labels=["source"]
            )
            up = GaugeMetricFamily("lakeward_followed_up", "Whether a followed source is well.", labels=["source"])
            for each in states:
                if each.log is not None:
                    lag.add_metric([each.followed.source], each.log.lag_bytes)
                up.add_metric([each.followed.source], float(each.trouble is None))
            yield lag
            yield up

    def _ask_lag(self) -> None:
        try:
            found = self._workspace.sources.followed()
        except LakewardError as error:
            log.warning("what followed sources keep could not be asked: %s", error)
            return
        with self._lock:
            self._lag = found


def _counted(values: Mapping[str, int]) -> Iterator[Metric]:
    """Return counters of a workspace, whose names have their labels as Prometheus writes them."""
    families: dict[str, CounterMetricFamily] = {}
    for series, value in values.items():
        name, _, labels = series.partition("{")
        parts = dict(_LABEL.findall(labels))
        family = families.get(name)
        if family is None:
            about = "Counted in this process; see docs/flags.md."
            family = families[name] = CounterMetricFamily(name.removesuffix("_total"), about, labels=sorted(parts))
        family.add_metric([parts[each] for each in sorted(parts)], value)
    yield from families.values()
