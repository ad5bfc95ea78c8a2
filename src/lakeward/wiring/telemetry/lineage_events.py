"""Events of OpenLineage: that a build began, and how it ended, with what it read and wrote.

A thread of its own makes and sends them, in order; a receiver that does not answer costs the build nothing, and the
events are lost, which the log tells. Datasets and jobs are all of one namespace, the setting `openlineage_namespace`; a
dataset is called by its full name, and a job like its pipeline.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests
from openlineage.client.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    JobFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
    schema_dataset,
)
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport
from openlineage.client.transport.transport import Transport

import lakeward
from lakeward.access.guard import acting
from lakeward.access.principal import OWNER
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import LakewardError, SettingsError, Stopped
from lakeward.happenings import Happening, listen
from lakeward.pipelines.service import Pipelines
from lakeward.storage.requests import BuildResult, WriteResult
from lakeward.types.logical import LogicalType
from lakeward.wiring.sections import TelemetrySection

PRODUCER = f"lakeward://lakeward/{lakeward.__version__}"
"""Who makes the events: an address, as the specification wants one, that says the version."""
WAITING = 1000
"""So many events wait to be sent; what comes then is lost."""
SEND_SECONDS = 5.0
CLOSE_SECONDS = 10.0
"""So long does closing a workspace wait until all is sent."""

log = logging.getLogger("lakeward.telemetry")


def start(wanted: TelemetrySection, tree: Tree, pipelines: Pipelines) -> Callable[[], None]:
    """Send events of the builds of one workspace; return what ends that."""
    client = OpenLineageClient(transport=_transport(wanted))
    events = LineageEvents(client, wanted.openlineage_namespace, tree, pipelines)
    end = listen(events)

    def stop() -> None:
        end()
        events.close()

    return stop


def _transport(wanted: TelemetrySection) -> Transport:
    url = wanted.openlineage_url or ""
    parts = urlsplit(url)
    if parts.scheme == "file":
        Path(unquote(parts.path)).parent.mkdir(parents=True, exist_ok=True)
        return FileTransport(FileConfig(log_file_path=unquote(parts.path), append=True))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            "the setting telemetry.openlineage_url is neither http(s)://… nor file:///…",
            next_step="name a receiver as http://host:port, or a file as file:///var/log/lakeward/lineage.jsonl",
            setting="telemetry.openlineage_url",
        )
    key = wanted.openlineage_key
    auth = ApiKeyTokenProvider({"api_key": key.get_secret_value()}) if key is not None else None
    config = HttpConfig(url=url, timeout=SEND_SECONDS, retry={"total": 1, "connect": 1, "read": 0})
    if auth is not None:
        config.auth = auth
    return HttpTransport(config)


@dataclass(frozen=True)
class _Told:
    """What is to be sent of a build."""

    build: Happening
    at: datetime
    state: RunState


class LineageEvents:
    """Makes events of builds, and sends them.

    Args:
        client: sends.
        namespace: of datasets and jobs.
        tree, pipelines: of the workspace; builds of others are left out.
    """

    def __init__(self, client: OpenLineageClient, namespace: str, tree: Tree, pipelines: Pipelines) -> None:
        self._client = client
        self._namespace = namespace
        self._tree = tree
        self._pipelines = pipelines
        self._waiting: queue.Queue[_Told | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._run, name="lakeward-lineage", daemon=True)
        self._thread.start()

    def begun(self, happening: Happening) -> None:
        """Tell of a build that begins."""
        self._put(happening, RunState.START)

    def ended(self, happening: Happening) -> None:
        """Tell of how it ended."""
        error = happening.error
        failed = RunState.FAIL if isinstance(error, Exception) and not isinstance(error, Stopped) else RunState.ABORT
        self._put(happening, RunState.COMPLETE if error is None else failed)

    def close(self) -> None:
        """Send what waits, for a while."""
        try:
            self._waiting.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            return
        self._thread.join(CLOSE_SECONDS)

    def _put(self, happening: Happening, state: RunState) -> None:
        if happening.name != "build" or happening.facts["tree"] is not self._tree:
            return
        try:
            self._waiting.put_nowait(_Told(happening, datetime.now(UTC), state))
        except queue.Full:
            log.warning("an event of pipeline %s is lost: too many wait to be sent", happening.facts["pipeline"])

    def _run(self) -> None:
        # What it looks up, it looks up for nobody in particular.
        with acting(OWNER):
            for told in iter(self._waiting.get, None):
                try:
                    self._client.emit(self._event(told))
                except (requests.RequestException, OSError, RuntimeError, LakewardError) as error:
                    log.warning("an event of pipeline %s is lost: %s", told.build.facts["pipeline"], error)

    def _event(self, told: _Told) -> RunEvent:
        facts, result = told.build.facts, told.build.result
        written = {each.dataset: each for each in result.transactions} if isinstance(result, BuildResult) else {}
        names = list(dict.fromkeys([*facts["outputs"], *written]))
        return RunEvent(
            eventType=told.state,
            eventTime=told.at.isoformat(),
            run=Run(str(told.build.id), self._run_facets(told)),
            job=Job(self._namespace, facts["pipeline"], _job_facets()),
            inputs=[self._input(name, version) for name, version in facts["inputs"].items()],
            outputs=[self._output(name, written.get(name), told) for name in names],
            producer=PRODUCER,
        )

    def _run_facets(self, told: _Told) -> dict[str, RunFacet]:
        engine = processing_engine_run.ProcessingEngineRunFacet(lakeward.__version__, "Lakeward", "", producer=PRODUCER)
        facets: dict[str, RunFacet] = {"processing_engine": engine}
        error = told.build.error
        if told.state is not RunState.START and error is not None:
            message = error.message if isinstance(error, LakewardError) else type(error).__name__
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(message, "python", producer=PRODUCER)
        return facets

    def _input(self, name: str, version: int) -> InputDataset:
        record = self._tree.find(name)
        facets = _dataset_facets(record, version)
        return InputDataset(self._namespace, name, facets=facets)

    def _output(self, name: str, written: WriteResult | None, told: _Told) -> OutputDataset:
        if written is None:
            return OutputDataset(self._namespace, name, facets={})
        facets = _dataset_facets(self._tree.find(name), written.version)
        if not told.build.facts["one_off"] and (lineage := self._columns(name)) is not None:
            facets["columnLineage"] = lineage
        rows = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=written.rows_added + written.rows_updated, producer=PRODUCER
        )
        return OutputDataset(self._namespace, name, facets=facets, outputFacets={"outputStatistics": rows})

    def _columns(self, name: str) -> DatasetFacet | None:
        """Return which columns of sources each column is made from; of those of which that can't be told, nothing."""
        fields = {
            column: column_lineage_dataset.Fields(
                [
                    column_lineage_dataset.InputField(self._namespace, dataset, source)
                    for dataset, source in made_from.pairs
                ]
            )
            for column, made_from in self._pipelines.lineage().made_from(name).items()
            if made_from is not None
        }
        return column_lineage_dataset.ColumnLineageDatasetFacet(fields, producer=PRODUCER) if fields else None


def _dataset_facets(record: DatasetRecord | None, version: int) -> dict[str, DatasetFacet]:
    facets: dict[str, DatasetFacet] = {
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(str(version), producer=PRODUCER)
    }
    if record is not None:
        columns = ((column.name, column.type) for column in record.schema.columns)
        facets["schema"] = schema_dataset.SchemaDatasetFacet(_fields(columns), producer=PRODUCER)
    return facets


def _fields(columns: Iterable[tuple[str, LogicalType]]) -> list[schema_dataset.SchemaDatasetFacetFields]:
    return [schema_dataset.SchemaDatasetFacetFields(name, str(type_)) for name, type_ in columns]


def _job_facets() -> dict[str, JobFacet]:
    kind = job_type_job.JobTypeJobFacet("BATCH", "LAKEWARD", "PIPELINE", producer=PRODUCER)
    return {"jobType": kind}
