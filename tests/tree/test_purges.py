"""What can't come back is removed: each file by its own name, none that another table has, none that lies elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyiceberg.catalog import Catalog

import lakeward
from lakeward.errors import ConflictError, UnknownObject
from lakeward.storage.arms.iceberg.named_files import named_files
from lakeward.storage.arms.iceberg.namespaces import drop_if_empty
from lakeward.storage.table import table_ref
from support.arms import iceberg_table
from support.crashes import Driver
from support.ledger import rows

MakeDataset = Callable[..., lakeward.Dataset]
GRACE = 2.0


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


def data_files(found: set[Path]) -> set[Path]:
    """Return those that hold rows: maintenance goes on with the metadata of all other tables meanwhile."""
    return {path for path in found if path.suffix == ".parquet"}


def catalog_of(ws: lakeward.Workspace) -> Catalog:
    return ws.storage.routing.arm("iceberg")._tables.catalog


def table_of(ws: lakeward.Workspace, dataset: lakeward.Dataset) -> Any:
    return iceberg_table(ws, table_ref(dataset.record))


def test_g02_only_its_own_rows_and_files_go(
    ws: lakeward.Workspace, dataset: MakeDataset, place: str, warehouse: Path, a_month_later: Callable[[], None]
) -> None:
    """Whose names begin alike, on both arms; the dry run says the same before."""
    doomed, *kept = [dataset("iceberg", name) for name in ("ord", "orders", "ord 2")]
    rows_doomed, rows_kept = dataset("postgres", "ord rows"), dataset("postgres", "ord rows 2")
    digests = {each.name: each.digest() for each in (*kept, rows_kept)}
    own = set(files(Path(table_of(ws, doomed).location().removeprefix("file://"))))
    others = data_files(files(warehouse) - own)
    ids = (doomed._id, rows_doomed._id)
    ws.drop_dataset(doomed.name)
    ws.drop_dataset(rows_doomed.name)
    a_month_later()
    before = files(warehouse)
    foreseen = ws.maintain(older_than=GRACE, dry_run=True)
    assert files(warehouse) == before
    done = ws.maintain(older_than=GRACE)
    assert done.purged == foreseen.purged == [f"dataset {doomed.name}", f"dataset {rows_doomed.name}"]
    assert (done.failures, done.notes, foreseen.notes) == ([], [], [])
    assert data_files(files(warehouse)) == others and not (own & files(warehouse))
    assert {each.name: each.digest() for each in (*kept, rows_kept)} == digests
    counted = "SELECT count(*) FROM lakeward.dataset_rows WHERE dataset_id = :id"
    assert rows(ws.database, counted, id=ids[1]) == [(0,)]
    past = "SELECT count(*) FROM lakeward.dataset_transactions WHERE dataset_id = :id AND status = 'committed'"
    assert rows(ws.database, past, id=ids[0]) == [(3,)], "two writes and the drop stay in the ledger"
    with pytest.raises(UnknownObject) as caught:
        ws.undrop_dataset(doomed.name)
    assert type(caught.value) is UnknownObject, "purged is forgotten"
    again = ws.create_dataset(doomed.name, {"id": "long"}, arm="iceberg")
    assert again.record.slugs[2] == "ord", "the slug is free"
    assert again.write([{"id": 1}]).row_count == 1
    assert ws.maintain(older_than=GRACE).purged == []


def test_a_file_that_another_table_names_stays(
    ws: lakeward.Workspace, dataset: MakeDataset, tmp_path: Path, a_month_later: Callable[[], None]
) -> None:
    """Another engine may have added it there; and what lies elsewhere stays, too, links or not."""
    made, other = dataset("iceberg"), dataset("iceberg", "other")
    table = table_of(ws, made)
    named = [each.path.removeprefix("file://") for each in named_files(table) if each.kind == "data file"]
    shared, linked = Path(named[0]), Path(named[1])
    foreign = table_of(ws, other)
    added = tmp_path / "elsewhere.parquet"
    shutil.move(linked, added)
    linked.symlink_to(added)
    foreign.add_files([f"file://{shared}"], check_duplicate_files=False)
    ws.drop_dataset(made.name)
    a_month_later()
    done = ws.maintain(older_than=GRACE)
    assert f"dataset {made.name}" in done.purged
    assert shared.exists() and added.exists()
    assert any("in use by another one" in note for note in done.notes)
    assert any("is not in its own directory" in note for note in done.notes)
    assert foreign.refresh().scan().to_arrow().num_rows == 10
    ws.restore(other.name)


def test_a_table_outside_the_warehouse_keeps_its_files_and_its_name(
    ws: lakeward.Workspace, dataset: MakeDataset, tmp_path: Path, a_month_later: Callable[[], None]
) -> None:
    made = dataset("iceberg")
    identifier = made.record.identifier.parts
    elsewhere, table = tmp_path / "theirs", table_of(ws, made)
    shutil.copytree(Path(table.location().removeprefix("file://")), elsewhere)
    metadata = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text(encoding="utf-8"))
    place = elsewhere / "metadata" / "99999-theirs.metadata.json"
    place.write_text(json.dumps({**metadata, "location": f"file://{elsewhere}"}), encoding="utf-8")
    with psycopg.connect(ws.database.libpq_url) as connection:
        moved = "UPDATE iceberg_tables SET metadata_location = %s WHERE metadata_location = %s"
        connection.execute(moved, (f"file://{place}", table.metadata_location))
    kept = files(elsewhere)
    ws.drop_dataset(made.name)
    a_month_later()
    foreseen = ws.maintain(older_than=GRACE, dry_run=True)
    assert any("was not made for it in the warehouse" in note for note in foreseen.notes)
    done = ws.maintain(older_than=GRACE)
    assert f"dataset {made.name}" in done.purged and done.failures == []
    assert kept <= files(elsewhere)
    left = catalog_of(ws).load_table(identifier)
    assert "lakeward.dataset" not in left.properties
    catalog_of(ws).drop_table(identifier)


def test_a_table_that_somebody_took_out_of_the_catalog_keeps_its_files(
    ws: lakeward.Workspace, dataset: MakeDataset, a_month_later: Callable[[], None]
) -> None:
    """They may have it in another catalog. It is purged once, and told of."""
    made = dataset("iceberg")
    location = table_of(ws, made).location()
    kept = files(Path(location.removeprefix("file://")))
    catalog_of(ws).drop_table(made.record.identifier.parts)
    ws.drop_dataset(made.name)
    a_month_later()
    for dry_run in (True, False):
        done = ws.maintain(older_than=GRACE, dry_run=dry_run)
        assert done.purged == [f"dataset {made.name}"] and not done.failures
        assert [note for note in done.notes if "took its table out of the catalog" in note and location in note]
    assert files(Path(location.removeprefix("file://"))) == kept
    assert ws.maintain(older_than=GRACE).purged == []


def test_another_engine_wrote_to_it_since(
    ws: lakeward.Workspace, dataset: MakeDataset, a_month_later: Callable[[], None]
) -> None:
    """Then nothing of it goes, and it can still come back: a purge that can't be done is not begun."""
    made = dataset("iceberg")
    identifier = made.record.identifier.parts
    ws.drop_dataset(made.name)
    table = catalog_of(ws).load_table(identifier)
    table.append(table.scan().to_arrow())
    a_month_later()
    done = ws.maintain(older_than=GRACE)
    assert [each.error for each in done.failures if each.dataset == made.name and "another engine" in each.error]
    assert f"dataset {made.name}" not in done.purged
    assert ws.undrop_dataset(made.name) == [made.name] and ws.dataset(made.name).row_count == 5


def test_g06_a_namespace_goes_when_nothing_is_in_it(
    ws: lakeward.Workspace, dataset: MakeDataset, place: str, a_month_later: Callable[[], None]
) -> None:
    """Neither with a table nor a child in it, whoever made those; and `_` is no wildcard."""
    catalog, iceberg = place.partition(".")[0], catalog_of(ws)
    dataset("iceberg")
    spaces = [(f"{catalog}_my_ns",), (f"{catalog}_myxns",), (f"{catalog}_p",), (f"{catalog}_p", "q")]
    for space in spaces:
        iceberg.create_namespace(space)
    schema = table_of(ws, ws.dataset(f"{place}.orders")).schema()
    for name in ((f"{catalog}_myxns", "t"), (f"{catalog}_p", "q", "t"), (catalog, "s", "strange")):
        iceberg.create_table(name, schema)
    assert drop_if_empty(iceberg, (f"{catalog}_my_ns",)) is None
    assert drop_if_empty(iceberg, (f"{catalog}_my_ns",)) is None, "gone is gone"
    assert f"{catalog}_p.q is in it" in (drop_if_empty(iceberg, (f"{catalog}_p",)) or "")
    assert f"{catalog}_myxns.t is in it" in (drop_if_empty(iceberg, (f"{catalog}_myxns",)) or "")
    assert (f"{catalog}_myxns",) in iceberg.list_namespaces() and (f"{catalog}_p", "q") in iceberg.list_namespaces(
        (f"{catalog}_p",)
    )
    ws.drop_catalog(catalog, cascade=True)
    a_month_later()
    done = ws.maintain(older_than=GRACE)
    assert done.purged == [f"dataset {place}.orders"]
    assert [note for note in done.notes if f"schema {place} is kept for now" in note and "strange" in note]
    iceberg.drop_table((catalog, "s", "strange"))
    assert ws.maintain(older_than=GRACE).purged == [f"schema {place}", f"catalog {catalog}"]
    assert (catalog,) not in iceberg.list_namespaces()


def test_four_processes_at_once(
    ws: lakeward.Workspace,
    dataset: MakeDataset,
    driver: Driver,
    tree_root: Path,
    warehouse: Path,
    a_month_later: Callable[[], None],
) -> None:
    doomed = [dataset(arm, f"{arm} {number}") for number in range(2) for arm in ("iceberg", "postgres")]
    kept = dataset("iceberg")
    ids = [each._id for each in doomed]
    for each in doomed:
        ws.drop_dataset(each.name)
    a_month_later()
    case = {"maintain": [], "older_than": GRACE, "settings": str(tree_root / "lakeward.toml")}
    answers = [each.answer() for each in driver.run_together([case] * 4)]
    assert [each.get("failures", each) for each in answers] == [[]] * 4
    left = "SELECT count(*) FROM lakeward.datasets WHERE id = ANY (:ids) AND purged_at IS NULL"
    assert rows(ws.database, left, ids=ids) == [(0,)]
    assert not [path for path in files(warehouse) if "iceberg_" in str(path)] and kept.row_count == 5


STEPS = {
    "postgres": [("purge:begun", 1), ("maintain:rows", 1)],
    "iceberg": [("purge:begun", 1), ("purge:listed", 1), ("purge:entry", 1), ("purge:file", 3), ("purge:emptied", 1)],
}


@pytest.mark.parametrize("arm", STEPS)
def test_killed_at_each_step_the_next_one_goes_on(
    ws: lakeward.Workspace,
    dataset: MakeDataset,
    driver: Driver,
    tree_root: Path,
    a_month_later: Callable[[], None],
    arm: str,
) -> None:
    """At no time is there a file that neither the catalog nor the list of what is to go knows of."""
    made = dataset(arm)
    ref, root = table_ref(made.record), None
    if arm == "iceberg":
        root = Path(table_of(ws, made).location().removeprefix("file://"))
    ws.drop_dataset(made.name)
    a_month_later()
    case = {"maintain": [], "older_than": GRACE, "settings": str(tree_root / "lakeward.toml")}
    for step in STEPS[arm]:
        assert driver.run(fault=["crash", *step], **case).killed(), step
        if root is not None:
            listed = {Path(str(path)) for (path,) in rows(ws.database, "SELECT path FROM lakeward.purge_files")}
            table = ws.storage.routing.arm("iceberg")._tables.find(ref)
            named = {Path(each.path.removeprefix("file://")) for each in named_files(table)} if table else set()
            assert files(root) <= listed | named, step
        with pytest.raises(ConflictError, match="is being removed since"):
            ws.undrop_dataset(made.name)
    done = ws.maintain(older_than=GRACE)
    assert (done.purged, done.failures) == ([f"dataset {made.name}"], [])
    assert root is None or not root.exists()
    assert rows(ws.database, "SELECT count(*) FROM lakeward.dataset_rows WHERE dataset_id = :id", id=made._id) == [(0,)]
    assert rows(ws.database, "SELECT count(*) FROM lakeward.purges") == [(0,)]
