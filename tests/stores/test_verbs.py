"""Everything that a dataset can do, in an object store: and each table as others read it, without Lakeward."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

import lakeward
from lakeward.compute.engines.duckdb import DuckDBEngine
from lakeward.storage.arm import Scan
from lakeward.storage.arms.iceberg.scans import plan
from lakeward.storage.table import table_ref
from support.lakes import SHORT, Lake, Tidier, hasty
from support.seaweedfs import SeaweedFS

COLUMNS = {"id": "long", "note": "string"}

_numbers = itertools.count(1)


def made(lake: Lake, arm: str = "iceberg", **more: object) -> lakeward.Dataset:
    return lake.workspace.create_dataset(f"main.sales.d{next(_numbers)}", COLUMNS, ["id"], arm=arm, **more)


def rows(numbers: range, note: str = "old") -> pa.Table:
    return pa.table({"id": list(numbers), "note": [f"{note} {number}" for number in numbers]})


def held(table: pa.Table) -> list[tuple[int, str]]:
    return sorted(zip(table["id"].to_pylist(), table["note"].to_pylist(), strict=True))


def read_elsewhere(lake: Lake, dataset: lakeward.Dataset) -> list[tuple[int, str]]:
    """Read a dataset's table by PyIceberg's own reader, from the catalog alone."""
    properties = lake.catalog
    if "type" not in properties:
        properties = {"type": "sql", "uri": lake.workspace.database.sqlalchemy_url, **properties}
    where = dataset.locate()["iceberg"]["table"]
    catalog = load_catalog("lakeward", **properties, **{"s3.region": "us-east-1"})
    try:
        return held(catalog.load_table(tuple(where.split("."))).scan(selected_fields=("id", "note")).to_arrow())
    finally:
        catalog.close()


def test_every_verb_and_every_read(lake: Lake) -> None:
    dataset = made(lake)
    dataset.write(rows(range(3_000)), mode="replace")
    dataset.write(rows(range(3_000, 3_010)), mode="append")
    dataset.write(rows(range(5), "new"), mode="upsert")
    dataset.write(pa.table({"id": [7, 8]}), mode="delete")
    whole = [*held(rows(range(5), "new")), *held(rows(range(5, 7))), *held(rows(range(9, 3_010)))]
    assert held(dataset.to_arrow()) == whole == read_elsewhere(lake, dataset)
    assert held(dataset.to_arrow(version=2)) == held(rows(range(3_010)))
    assert held(dataset.to_arrow(since=2)) == held(rows(range(5), "new"))
    assert held(dataset.to_arrow(where="id >= 3005")) == held(rows(range(3_005, 3_010)))
    changed = Counter(dataset.changes(since=2).read_all()["__op"].to_pylist())
    assert changed == {"before": 5, "update": 5, "delete": 2}
    result = dataset.write(rows(range(2_000), "new"), mode="mirror")
    assert (result.rows_unchanged, result.rows_updated, result.rows_deleted) == (5, 1_993, 1_010)
    assert held(dataset.to_arrow()) == held(rows(range(2_000), "new")) == read_elsewhere(lake, dataset)
    dataset.verify()
    assert dataset.digest() == dataset.verify().recorded


def test_flips_there_and_back(lake: Lake) -> None:
    dataset = made(lake, "postgres")
    dataset.write(rows(range(500)), mode="replace")
    flip = lake.workspace.flip(dataset.name)
    flip.run("iceberg")
    assert dataset.arm == "iceberg"
    dataset.write(rows(range(20), "new"), mode="upsert")
    both = {arm: dataset.digest(arm=arm) for arm in ("iceberg", "postgres")}
    assert len(set(both.values())) == 1
    assert held(dataset.to_arrow()) == read_elsewhere(lake, dataset)
    flip.revert()
    assert dataset.arm == "postgres" and dataset.digest() == both["postgres"]


def test_compaction_and_maintenance(lake: Lake, seaweed: SeaweedFS, tidier: Tidier) -> None:
    """G02: old files go one by one, by a listing of the table's own place, and none of a place whose name goes on."""
    dataset = made(lake, partition_by=["note"])
    for number in range(3):
        dataset.write(pa.table({"id": [number], "note": ["it's 100% /?#*["]}), mode="append")
    before = held(dataset.to_arrow())
    place = dataset.locate()["iceberg"]["location"].partition("://")[2]
    own, beside = f"{place}/data/00000009-00000-x.parquet", f"{place}-x/data/00000009-00000-x.parquet"
    for path in (own, beside):
        with seaweed.files().open_output_stream(path) as stream:
            stream.write(b"orphan")
    lake.workspace.maintain(dataset.name, older_than=3600)
    assert held(dataset.to_arrow()) == before == read_elsewhere(lake, dataset)
    assert dataset.history()[0].verb == "compact" and seaweed.exists(own)
    removed = tidier(lake, dataset.name, own)
    assert f"s3://{own}" in removed and not any(beside in path for path in removed) and seaweed.exists(beside)
    assert held(dataset.to_arrow()) == before == read_elsewhere(lake, dataset)


def test_what_is_dropped_is_removed_file_by_file(lake: Lake, seaweed: SeaweedFS) -> None:
    dataset, stays = made(lake), made(lake)
    for each in (dataset, stays):
        each.write(rows(range(10)), mode="append")
        each.write(rows(range(5), "new"), mode="upsert")
    place = dataset.locate()["iceberg"]["location"].partition("://")[2]
    assert len(seaweed.below(place)) > 5
    with hasty(lake, "[retention]\ndropped_days = 0\n") as workspace:
        workspace.drop_dataset(dataset.name)
        removed = [each.what for each in workspace.maintain(older_than=SHORT).removed]
    assert any(place in each for each in removed)
    assert not [path for path in seaweed.below(place) if not path.endswith(".metadata.json")]
    assert held(stays.to_arrow()) == read_elsewhere(lake, stays)


def test_what_the_catalogs_can_do(lake: Lake) -> None:
    """SeaweedFS registers a table wrongly, and deletes the files of one that is dropped: only trying it tells."""
    known = lake.workspace.storage.routing.arm("iceberg").receiver().catalog(probe=True)
    assert known is not None and known.abilities is not None
    rest = lake.catalog.get("type") == "rest"
    assert (known.abilities.register_beside, known.abilities.drop_keeps_files) == (not rest, not rest)


def test_s01_no_name_leads_out_of_the_warehouse(sql_lake: Lake) -> None:
    names = ('main.sales."../../esc"', 'main.sales."%2e%2e%2f"', 'main.sales."s3://other/x"', 'main."a/../../b".x')
    for name in names:
        dataset = sql_lake.workspace.create_dataset(name, COLUMNS, ["id"], arm="iceberg")
        dataset.write(rows(range(2)), mode="append")
        location = dataset.locate()["iceberg"]["location"]
        assert location.startswith(f"{sql_lake.warehouse}/") and ".." not in location and "%" not in location
        assert held(dataset.to_arrow()) == held(rows(range(2))) == read_elsewhere(sql_lake, dataset)


def test_a_sealed_query_never_reaches_the_store(sql_lake: Lake, tmp_path: Path) -> None:
    """User SQL gets a stream of what it may read, and a DuckDB that knows no way to the store."""
    dataset = made(sql_lake)
    dataset.write(rows(range(100)), mode="append")
    arm, table = sql_lake.workspace.storage.routing.arm("iceberg"), table_ref(dataset.record)
    version = sql_lake.workspace.ledger.arm_version(dataset.record.id, "iceberg", 1)
    assert version is not None and version.snapshot_id is not None
    assert arm.in_place([(table, version, Scan(("id", "note")))]) == [None]
    scanned = plan(arm._tables.load(table), version.snapshot_id, table.schema, {"id"}, Scan(("id",)))
    assert scanned is not None
    with arm._duck.session() as connection:
        assert connection.execute(f"SELECT count(*) FROM ({scanned.sql})").fetchall() == [(100,)]
    sealed = DuckDBEngine(temp_directory=tmp_path)._connect(None)
    with pytest.raises(duckdb.Error):
        sealed.execute(scanned.sql).fetchall()
