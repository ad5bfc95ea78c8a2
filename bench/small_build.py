"""A build of 100 rows from source to committed version, end to end, on each arm."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from measure import in_fresh_process, table
from rows import COLUMNS, batch

import lakeward

BUILDS = 50
LIMITS_MS = {"postgres": 60, "iceberg": 200}

PIPELINE = """
pipeline: small
nodes:
  orders: {{source: bench.main.source}}
  priced: {{transform: "select id, customer_id, amount, status from orders where amount is not null"}}
outputs:
  - {{dataset: bench.main.small_{arm}, from: priced, arm: {arm}, strategy: replace, primary_key: [id]}}
"""


def case(arm: str) -> dict[str, object]:
    """Build so often, and return the median and the worst."""
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch:
        project = Path(scratch) / "project"
        (project / "pipelines").mkdir(parents=True)
        (project / "lakeward.toml").write_text("[project]\nname = 'bench'\n", encoding="utf-8")
        (project / "pipelines" / "small.yml").write_text(PIPELINE.format(arm=arm), encoding="utf-8")
        with lakeward.open(Path(scratch) / "home") as workspace:
            workspace.create_dataset("bench.main.source", COLUMNS).write(batch(0, 100))
            workspace.apply(project)
            workspace.build("small", full=True)
            milliseconds = []
            for _ in range(BUILDS):
                started = time.perf_counter()
                workspace.build("small", full=True)
                milliseconds.append((time.perf_counter() - started) * 1000)
    return {
        "arm": arm,
        f"p50 of {BUILDS}, ms": statistics.median(milliseconds),
        "limit ms": LIMITS_MS[arm],
        "worst ms": max(milliseconds),
    }


def main() -> str:
    """Run both arms and return the table."""
    return table("Build of 100 rows, end to end", [in_fresh_process(case, arm) for arm in LIMITS_MS])


if __name__ == "__main__":
    print(main())
