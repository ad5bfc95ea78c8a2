"""A keyed write looks each key up by its index, also where Postgres knows nothing of the table yet."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import lakeward
from lakeward.storage.arms.postgres import merge

ROWS = 30_000


@pytest.mark.parametrize("analyzed", [True, False])
def test_keys_are_looked_up_by_their_index(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, analyzed: bool
) -> None:
    plans: list[str] = []
    plan_of = merge._Merge._plan

    def explained(planned: merge._Merge) -> object:
        statement = plan_of(planned)
        plans.append("\n".join(row[0] for row in planned._driver.execute("EXPLAIN " + statement.as_string())))
        return statement

    monkeypatch.setattr(merge._Merge, "_plan", explained)
    with lakeward.open(tmp_path / "home", database_url=database_url) as workspace:
        # Nobody is to analyse it behind the test's back.
        with psycopg.connect(database_url) as connection:
            connection.execute("ALTER TABLE lakeward.dataset_rows SET (autovacuum_enabled = off)")
        dataset = workspace.create_dataset("main.plan.large", {"id": "long", "note": "string"}, primary_key=["id"])
        dataset.write(({"id": number, "note": "old"} for number in range(ROWS)), mode="replace")
        if analyzed:
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute("ANALYZE lakeward.dataset_rows")
        for rows in (10, 3_000):
            new = [{"id": number, "note": f"new {rows}"} for number in range(rows)]
            assert dataset.write(new, mode="upsert").rows_updated == rows
    assert len(plans) == 2
    assert all("dataset_rows_key" in plan for plan in plans), plans
    assert not any("dataset_rows_version" in plan or "Seq Scan on dataset_rows" in plan for plan in plans), plans
