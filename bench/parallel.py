"""Eight pipelines that don't read one another, by 1, 2 and 4 jobs: four write to either arm, each from a source there.

One at a time is the reference. DuckDB uses every core for one query already, so what jobs can gain is the time in which
a build does something else: waits for Postgres, writes files, commits.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from measure import Peak, in_fresh_process, table

import lakeward

ROWS, GROUPS = 500_000, 100_000
PIPELINES = 8
JOBS = (1, 2, 4)
COLUMNS = {"id": "long", "v": "double", "t": "string"}
ROUNDS = 3

PIPELINE = """
pipeline: p{number}
nodes:
  s: {{source: bench.main.{arm}}}
  sums: {{transform: "select id % {groups} as id, sum(v) as v, max(t) as t from s group by 1 order by 1"}}
outputs:
  - {{dataset: bench.main.p{number}, from: sums, arm: {arm}, strategy: replace, primary_key: [id]}}
"""


def case() -> dict[str, object]:
    """Build all of them by each number of jobs in turn, and return the medians."""
    seconds: dict[int, list[float]] = {jobs: [] for jobs in JOBS}
    peaks: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch:
        project = Path(scratch) / "project"
        (project / "pipelines").mkdir(parents=True)
        (project / "lakeward.toml").write_text("[project]\nname = 'bench'\n", encoding="utf-8")
        for number in range(PIPELINES):
            arm = ("postgres", "iceberg")[number % 2]
            text = PIPELINE.format(number=number, arm=arm, groups=GROUPS)
            (project / "pipelines" / f"p{number}.yml").write_text(text, encoding="utf-8")
        with lakeward.open(Path(scratch) / "home") as workspace:
            for arm in ("postgres", "iceberg"):
                workspace.create_dataset(f"bench.main.{arm}", COLUMNS, arm=arm).write(_rows())
            workspace.apply(project)
            workspace.build(full=True)
            for _ in range(ROUNDS):
                for jobs in JOBS:
                    with Peak() as peak:
                        started = time.perf_counter()
                        workspace.build(full=True, jobs=jobs)
                        seconds[jobs].append(time.perf_counter() - started)
                    peaks[jobs] = max(peaks.get(jobs, 0.0), peak.mb)
    return {str(jobs): (statistics.median(seconds[jobs]), peaks[jobs]) for jobs in JOBS}


def _rows() -> pa.Table:
    ids = pa.array(range(ROWS), pa.int64())
    return pa.table({"id": ids, "v": pc.cast(ids, pa.float64()), "t": pc.cast(ids, pa.string())})


def main() -> str:
    """Run it and return the table."""
    found = in_fresh_process(case)
    one = found["1"][0]  # type: ignore[index]
    rows: list[dict[str, object]] = []
    for jobs in JOBS:
        seconds, peak = found[str(jobs)]  # type: ignore[misc]
        rows.append({"jobs": jobs, f"median of {ROUNDS}, s": seconds, "× of one job": seconds / one, "peak MB": peak})
    return table(f"{PIPELINES} pipelines in parallel, {ROWS:,} rows read and {GROUPS:,} written by each", rows)


if __name__ == "__main__":
    print(main())
