"""Which files of an Iceberg table go: those that nothing names and nobody can still be using, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import EmptyReplace, StorageError
from lakeward.storage.arms.iceberg.stores.local_store import LocalStore
from lakeward.storage.arms.iceberg.upkeep import own_root
from lakeward.storage.table import table_ref
from lakeward.testing import raise_at
from support.ledger import intent_on
from support.past import Past

MakePast = Callable[..., Past]
HISTORY = ("append", "append", "replace", "append", "replace", "append", "append")


def named(past: Past) -> set[str]:
    """Return the names of all files that the table's metadata names, itself and older metadata included."""
    table = past.table()
    paths = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.metadata.snapshots:
        paths.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            paths.add(manifest.manifest_path)
            paths.update(e.data_file.file_path for e in manifest.fetch_manifest_entry(table.io, discard_deleted=True))
    return {Path(path).name for path in paths}


def orphan(past: Past, name: str = "data/00000009-00000-orphan.parquet") -> Path:
    path = past.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"nobody names this")
    return path


def test_what_is_left_is_what_is_named(past: MakePast) -> None:
    subject = past("iceberg", *HISTORY)
    subject.maintain()
    subject.grow_old()
    before = subject.files()
    report = subject.maintain()
    subject.assert_readable([5, 6, 7])
    left = subject.files()
    assert {path.name for path in left} == named(subject)
    gone = {Path(each.what) for each in report.removed if each.bytes}
    assert gone == before - left and report.bytes > 0
    assert sum(path.suffix == ".parquet" for path in gone) == 4, "the rows of versions 1 to 4 have been replaced"
    assert subject.maintain().removed == []
    subject.grow("append", "replace")
    subject.maintain()
    subject.assert_readable([7, 8, 9])


def test_g02_files_of_a_dataset_whose_name_begins_alike_stay(past: MakePast) -> None:
    """G02: dropping one table also deleted the files of another whose location began with the same characters."""
    made = [past("iceberg", *HISTORY, name=f'main.alike."{name}"') for name in ("ord", "orders", "ord 2", "ord_")]
    strangers = [orphan(each) for each in made]
    for each in made:
        each.grow_old()
    made[0].maintain()
    assert [path.exists() for path in strangers] == [False, True, True, True]
    for each in made[1:]:
        each.assert_readable([1, 2, 3, 4, 5, 6, 7])


def test_s01_nothing_outside_its_own_directory_is_touched(
    past: MakePast, ws: lakeward.Workspace, tmp_path: Path
) -> None:
    """S01: names and links must not lead out of the warehouse."""
    subject, other = past("iceberg", *HISTORY), past("iceberg", *HISTORY)
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "00000001-00000-x.parquet").write_bytes(b"precious")
    (subject.root / "data" / "linked").symlink_to(outside)
    (subject.root / "data" / "linked.parquet").symlink_to(outside / "00000001-00000-x.parquet")
    foreign = subject.root / "data" / "notes.txt"
    foreign.write_text("of a kind that we don't know", encoding="utf-8")
    subject.grow_old()
    subject.maintain()
    assert (outside / "00000001-00000-x.parquet").read_bytes() == b"precious"
    assert (subject.root / "data" / "linked.parquet").is_symlink() and foreign.exists()
    table = table_ref(subject.dataset.record)
    store, warehouse = LocalStore(), f"file://{ws.settings.values.warehouse}"
    found = own_root(f"file://{subject.root}", store, table, warehouse)
    assert found is not None and found.location == f"file://{subject.root}"
    for location in (other.root, subject.root.parent, outside, Path("/"), subject.root / ".." / other.root.name):
        assert own_root(f"file://{location}", store, table, warehouse) is None
    link = tmp_path / subject.root.name
    link.symlink_to(subject.root)
    assert own_root(f"file://{link}", store, table, f"file://{tmp_path}") is None
    assert own_root(f"file://{subject.root}", store, table, f"file://{outside}") is None


def test_young_files_stay_and_so_do_those_of_an_open_transaction(past: MakePast, ws: lakeward.Workspace) -> None:
    """C02: a commit whose outcome is open may still name them."""
    subject = past("iceberg", *HISTORY)
    path = orphan(subject)
    subject.maintain(grace=3600)
    assert path.exists()
    subject.grow_old(600)
    opened = ws.ledger.try_open(intent_on(subject.dataset.record))
    assert opened is not None
    with ws.database.transaction() as connection:
        connection.exec_driver_sql(
            "UPDATE lakeward.dataset_transactions SET opened_at = opened_at - interval '20 minutes' WHERE id = %s",
            (opened.id,),
        )
        connection.exec_driver_sql(
            "UPDATE lakeward.leases SET lease_until = lease_until + interval '1 hour' WHERE transaction_id = %s",
            (opened.id,),
        )
    subject.maintain()
    assert path.exists(), "written after the transaction was opened, as far as anybody knows"
    ws.ledger.abort(opened.id, opened.fence, "the test is over")
    subject.maintain()
    assert not path.exists()


def test_files_of_a_version_that_has_just_expired_stay_for_its_readers(past: MakePast) -> None:
    subject = past("iceberg", *HISTORY)
    reader = subject.dataset.read(version=2)
    subject.grow_old()
    ended = subject.maintain(grace=3600)
    assert {"1", "2", "3", "4"} <= {each.what for each in ended.removed if each.kind == "version"}
    assert any(each.kind == "snapshot" for each in ended.removed)
    again = subject.maintain(grace=3600)
    assert reader.read_all().num_rows == 8
    assert not any(each.kind == "data file" for each in (*ended.removed, *again.removed))


def test_branches_and_tags_of_others_keep_what_they_name(past: MakePast) -> None:
    subject = past("iceberg", *HISTORY)
    table = subject.table()
    second = next(each for each in table.metadata.snapshots if each.summary["lakeward.version"] == "2")
    fourth = next(each for each in table.metadata.snapshots if each.summary["lakeward.version"] == "4")
    with table.manage_snapshots() as manage:
        manage.create_tag(second.snapshot_id, "audit").create_branch(fourth.snapshot_id, "foreign-experiment")
    subject.maintain()
    subject.grow_old()
    subject.maintain()
    table = subject.table()
    assert table.scan(snapshot_id=second.snapshot_id).to_arrow().num_rows == 8
    assert table.scan(snapshot_id=fourth.snapshot_id).to_arrow().num_rows == 8
    subject.assert_readable([5, 6, 7])


def test_a_table_that_lacks_a_readable_version_is_left_alone(past: MakePast) -> None:
    """An answer of the catalog from yesterday must not cost today's files."""
    subject = past("iceberg", *HISTORY)
    path = orphan(subject)
    subject.maintain()
    subject.grow_old()
    path.touch()
    sixth = next(each for each in subject.table().metadata.snapshots if each.summary["lakeward.version"] == "6")
    subject.table().maintenance.expire_snapshots().by_id(sixth.snapshot_id).commit()
    subject.grow_old()
    before = subject.files()
    assert subject.maintain().removed == [] and subject.files() == before
    with pytest.raises(StorageError, match="is not in its Iceberg table"):
        subject.dataset.to_arrow(version=6)


def test_a_diverged_dataset_is_left_alone(past: MakePast, ws: lakeward.Workspace) -> None:
    subject = past("iceberg", *HISTORY)
    path = orphan(subject)
    subject.grow_old()
    with ws.database.transaction() as connection:
        connection.exec_driver_sql(
            "UPDATE lakeward.datasets SET status = 'diverged' WHERE id = %s", (subject.dataset.record.id,)
        )
    subject.maintain()
    assert path.exists()


def test_the_empty_table_of_an_aborted_first_write_goes(
    past: MakePast, kept_url: str, kept_root: Path, ws: lakeward.Workspace
) -> None:
    subject = past("iceberg")
    with (
        lakeward.open(
            database_url=kept_url,
            warehouse=kept_root / "warehouse",
            settings_file=kept_root / "lakeward.toml",
            faults=raise_at("prepare:committed", EmptyReplace("no")),
        ) as failing,
        pytest.raises(EmptyReplace),
    ):
        failing.dataset(subject.name).write([{"id": 1, "note": "a"}])
    assert subject.table() is not None and subject.files()
    subject.maintain(grace=3600)
    assert subject.table() is not None, "it is young"
    subject.grow_old()
    assert "table" in {each.kind for each in subject.maintain(dry_run=True).removed}
    report = subject.maintain()
    assert "table" in {each.kind for each in report.removed}
    assert subject.table() is None and not subject.files()
    subject.grow("append", "append")
    subject.assert_readable([2, 3])


def test_files_of_a_first_table_that_the_catalog_never_knew_go(past: MakePast) -> None:
    subject = past("iceberg")
    orphan(subject, "metadata/00000-x.metadata.json")
    orphan(subject)
    subject.grow_old()
    subject.maintain()
    assert not subject.files()
    assert subject.maintain().removed == []


def test_a_copied_warehouse_of_another_dataset_is_not_ours(past: MakePast) -> None:
    subject, other = past("iceberg", *HISTORY), past("iceberg", "append")
    shutil.copytree(other.root, subject.root / "data" / other.root.name)
    before = other.files()
    subject.grow_old()
    subject.maintain()
    assert other.files() == before
    other.assert_readable([1])
