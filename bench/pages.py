"""The web page: the overview and the list with 2,000 datasets, each with a history, as the server makes them."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from measure import table
from starlette.testclient import TestClient

import lakeward
from lakeward.server.app import create_app

DATASETS = 2_000
WRITES = 3
TURNS = 9
PATHS = ("/", "/?q=d199", "/?state=empty", "/datasets", "/datasets?within=bench.s7", "/sql")
HTML = {"Accept": "text/html"}

LIKE_IT = """
WITH one AS (SELECT * FROM lakeward.datasets WHERE id = %(id)s), made AS (
    INSERT INTO lakeward.datasets (schema_id, name, columns, primary_key, head_version, last_version, row_count,
                                   next_row_id, next_row_index, status)
    SELECT s.id, 'd' || n, one.columns, one.primary_key, one.head_version, one.last_version, one.row_count,
           one.next_row_id, one.next_row_index, one.status
    FROM one, generate_series(1, %(datasets)s) n JOIN lakeward.schemas s ON s.name = 's' || n %% 40
    RETURNING id
), routed AS (
    INSERT INTO lakeward.routes (dataset_id, mode, primary_arm) SELECT id, 'pg', 'postgres' FROM made RETURNING 1
), held AS (
    INSERT INTO lakeward.arm_versions (dataset_id, arm, version, base_version)
    SELECT made.id, a.arm, a.version, a.base_version FROM made, lakeward.arm_versions a WHERE a.dataset_id = %(id)s
    RETURNING 1
)
INSERT INTO lakeward.dataset_transactions
    (dataset_id, version, parent_version, kind, verb, arm, status, build_id, writer, route_epoch, fence, opened_at,
     committed_at, published_at, ended_at, rows_in, rows_added, rows_updated, rows_unchanged, rows_deleted,
     rows_skipped, row_count)
SELECT made.id, t.version, t.parent_version, t.kind, t.verb, t.arm, t.status, gen_random_uuid(), t.writer,
       t.route_epoch, t.fence, t.opened_at, t.committed_at, t.published_at, t.ended_at, t.rows_in, t.rows_added,
       t.rows_updated, t.rows_unchanged, t.rows_deleted, t.rows_skipped, t.row_count
FROM made, lakeward.dataset_transactions t WHERE t.dataset_id = %(id)s
"""
"""Datasets with the history of one that was written: to write each of them would take minutes, and show no more."""


def main() -> str:
    """Return the table of `make bench`."""
    with tempfile.TemporaryDirectory(prefix="lw-") as home, lakeward.open(Path(home) / "home") as workspace:
        _fill(workspace)
        app = create_app(workspace, Path(home), page_rows=1000, body_limit=1 << 20)
        with TestClient(app, base_url="http://127.0.0.1", headers=HTML) as client:
            rows = [_measured(client, path) for path in PATHS]
    versions = DATASETS * WRITES
    return table(f"The web page, with {DATASETS:,} datasets of {versions:,} versions (overview: at most 300 ms)", rows)


def _fill(workspace: lakeward.Workspace) -> None:
    for number in range(40):
        workspace.create_schema(f"bench.s{number}")
    one = workspace.create_dataset("bench.s0.d0", {"id": "long", "note": "string", "amount": "decimal(18,4)"}, ["id"])
    for number in range(WRITES):
        one.write([{"id": number, "note": "x", "amount": None}])
    with workspace.database.transaction() as connection:
        connection.exec_driver_sql(LIKE_IT, {"id": one.record.id, "datasets": DATASETS - 1})
        connection.exec_driver_sql("ANALYZE")
    assert len(workspace.datasets()) == DATASETS


def _measured(client: TestClient, path: str) -> dict[str, object]:
    taken = []
    size = 0
    for _ in range(TURNS):
        started = time.perf_counter()
        answer = client.get(path)
        taken.append((time.perf_counter() - started) * 1000)
        assert answer.status_code == 200, answer.text
        size = len(answer.content)
    middle, slowest = round(statistics.median(taken)), round(max(taken))
    return {"page": f"`{path}`", "median ms": middle, "slowest ms": slowest, "kB": size // 1000}


if __name__ == "__main__":
    print(main())
