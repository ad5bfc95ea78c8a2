"""What a real catalog can do is found out, and tables are adopted and moved in it; no secret stays anywhere."""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql
from pyiceberg.catalog import load_catalog

from lakeward.control.identifiers import home
from lakeward.control.moves import Relocation
from lakeward.wiring.catalog_checks import catalog_checks
from support.lakes import Lake
from support.seaweedfs import SECRET

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "note": ["a", "b"]})


@pytest.fixture
def rest_lake(open_lake: Callable[[str], Lake]) -> Lake:
    return open_lake("rest")


def test_a_table_is_adopted_and_moved_by_what_the_catalog_can(
    rest_lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    workspace, catalog = rest_lake.workspace, load_catalog("theirs", **rest_lake.catalog)
    receiver = workspace.storage.routing.arm("iceberg").receiver()
    before = set(catalog.list_namespaces())
    found = receiver.catalog(probe=True)
    assert set(catalog.list_namespaces()) == before
    # Its drop deletes files whatever it is told, and what it registers is another table.
    assert found is not None and found.abilities is not None
    assert found.abilities.ways == ("rename",)
    assert not (found.abilities.register_beside or found.abilities.drop_keeps_files)

    catalog.create_namespace_if_not_exists(("legacy",))
    table = catalog.create_table(("legacy", "orders"), ROWS.schema, properties={"format-version": "2"})
    table.append(ROWS)
    plan = workspace.adopting.plan("legacy.orders", "main.real.orders", ["id"])
    workspace.adopting.run(plan)
    dataset = workspace.dataset("main.real.orders")
    assert dataset.to_arrow().num_rows == 2
    record = dataset.record
    assert workspace.moving.move(record, Relocation(record.identifier, home(record.slugs))).way == "rename"
    assert dataset.write([{"id": 2, "note": "new"}, {"id": 3, "note": "c"}], mode="upsert").row_count == 3
    moved = catalog.load_table(home(record.slugs).parts)
    assert sorted(moved.scan().to_arrow()["note"].to_pylist()) == ["a", "c", "new"]
    assert dataset.to_arrow(version=1).num_rows == 2

    told = "\n".join([*(each.detail for each in catalog_checks(workspace, probe=False)), caplog.text])
    told += moved.metadata.model_dump_json() + _ledger(rest_lake.database_url)
    for secret in {SECRET, quote(SECRET, safe=""), quote_plus(SECRET), SECRET[:10], SECRET[-10:]}:
        assert secret not in told


def _ledger(url: str) -> str:
    """Return everything that the control plane keeps, as text."""
    with psycopg.connect(url) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'lakeward'").fetchall()
        found = [
            connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier("lakeward", name))).fetchall()
            for (name,) in names
        ]
    assert any(found), "the control plane has something"
    return str(found)
