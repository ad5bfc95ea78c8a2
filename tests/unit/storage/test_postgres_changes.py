"""What two versions differ by is found by an index in Postgres, not by reading the dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

import lakeward
from lakeward.control.records import ArmVersion
from lakeward.storage.arms.postgres.changes import come_rows, gone_rows
from lakeward.storage.arms.postgres.seen import visible_rows
from lakeward.storage.table import table_ref

ROWS, CHANGED = 20_000, 200


@pytest.fixture
def dataset(workspace: lakeward.Workspace) -> lakeward.Dataset:
    """Many rows; then some are updated, as many deleted, and as many come and go."""
    made = workspace.create_dataset("main.sales.orders", {"id": "long", "note": "string"}, ["id"])
    made.write([{"id": number, "note": f"note {number}"} for number in range(ROWS)])
    made.write([{"id": number * 7, "note": "new"} for number in range(CHANGED)], mode="upsert")
    made.write([{"id": number * 7 + 1} for number in range(CHANGED)], mode="delete")
    made.write([{"id": ROWS + number, "note": "short"} for number in range(CHANGED)])
    made.write([{"id": ROWS + number} for number in range(CHANGED)], mode="delete")
    return made


def places(workspace: lakeward.Workspace, dataset: lakeward.Dataset, *versions: int) -> list[ArmVersion]:
    found = [workspace.ledger.arm_version(dataset.record.id, "postgres", version) for version in versions]
    assert None not in found
    return [each for each in found if each is not None]


def scans(plan: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, index and rows (read, also those that a condition then leaves out) of each scan of a plan."""
    if "Scan" in plan["Node Type"]:
        rows = (
            plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        )
        yield plan["Node Type"], plan.get("Index Name", ""), int(rows)
    for child in plan.get("Plans", []):
        yield from scans(child)


@pytest.mark.parametrize("analyzed", [True, False])
def test_the_rows_of_a_delta_are_found_by_an_index(
    workspace: lakeward.Workspace, dataset: lakeward.Dataset, analyzed: bool
) -> None:
    old, new = places(workspace, dataset, 1, 5)
    ref = table_ref(dataset.record)
    with psycopg.connect(workspace.database.libpq_url, autocommit=True) as connection:
        if analyzed:
            connection.execute("ANALYZE lakeward.dataset_rows")
        queries = {
            "until": gone_rows(ref, old, new),
            "version": come_rows(ref, old, new),
            # What `read(since=1)` reads.
            "dataset_rows_version": visible_rows(ref, new, 1),
        }
        for index, query in queries.items():
            explained = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) {}").format(query)
            row = connection.execute(explained).fetchone()
            assert row is not None
            found = list(scans(json.loads(json.dumps(row[0]))[0]["Plan"]))
            assert all(kind != "Seq Scan" for kind, _, _ in found), found
            assert all(rows <= 3 * CHANGED for _, _, rows in found), found
            assert any(index in name for _, name, _ in found), found


def test_they_are_no_more_than_the_delta(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> None:
    old, new = places(workspace, dataset, 1, 5)
    ref = table_ref(dataset.record)
    with psycopg.connect(workspace.database.libpq_url) as connection:
        assert len(connection.execute(gone_rows(ref, old, new)).fetchall()) == 2 * CHANGED
        assert len(connection.execute(come_rows(ref, old, new)).fetchall()) == CHANGED
    changes = dataset.changes(1).read_all()["__op"].to_pylist()
    counts = [changes.count(each) for each in ("update", "before", "delete", "insert")]
    assert counts == [CHANGED, CHANGED, CHANGED, 0]
