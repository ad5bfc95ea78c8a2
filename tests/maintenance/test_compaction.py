"""Compaction on a real table: it changes no row, disturbs no reader, and does nothing where there is nothing to do."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFileContent
from pyiceberg.table.snapshots import Operation

import lakeward
from lakeward.storage.arms.iceberg.compaction import Compactor
from lakeward.storage.leftovers import Rewriting
from lakeward.storage.settings import CompactionPolicy
from lakeward.storage.table import table_ref
from lakeward.testing import AtStep
from support.arms import branches, iceberg_table
from support.compaction import CALM
from support.crashes import unclean
from support.other_engine import OtherEngine
from support.position_deletes import data_files, delete_files, delete_rows

Compacting = Callable[..., lakeward.Workspace]

COLUMNS = {"id": "long", "note": "string", "tags": "list<string>", "amount": "double"}
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def manual(compacting: Compacting) -> lakeward.Workspace:
    return compacting("manual")


def rows(first: int, count: int, text: str = "x") -> list[dict[str, Any]]:
    """Values that a careless copy would confuse: null and empty lists, NaN, and -0.0."""
    odd: tuple[Any, ...] = (None, [], ["a", None], [None])
    amounts = (float("nan"), -0.0, 1.5, None)
    return [
        {"id": n, "note": f"{text} {n}" if n % 5 or text != "x" else None, "tags": odd[n % 4], "amount": amounts[n % 3]}
        for n in range(first, first + count)
    ]


def made(ws: lakeward.Workspace, arm: str = "iceberg") -> lakeward.Dataset:
    return ws.create_dataset(f"main.compaction.d{next(_numbers)}", COLUMNS, ["id"], arm=arm)


def whole(dataset: lakeward.Dataset, **of: Any) -> pa.Table:
    return dataset.to_arrow(identity=True, **of).sort_by("__row_id")


def table_of(ws: lakeward.Workspace, dataset: lakeward.Dataset) -> Any:
    return iceberg_table(ws, table_ref(dataset.record))


def compact(ws: lakeward.Workspace, dataset: lakeward.Dataset, dry_run: bool = False) -> list[Rewriting]:
    report = ws.maintain(dataset.name, older_than=CALM, dry_run=dry_run)
    assert report.failures == []
    return report.compacted


def worn(ws: lakeward.Workspace) -> lakeward.Dataset:
    """A dataset whose first file has eight delete files, with small ones behind it."""
    dataset = made(ws)
    dataset.write(rows(0, 100))
    for number in range(8):
        dataset.write(rows(number, 1, "new") + rows(200 + number, 2), mode="upsert")
    return dataset


def same(left: pa.Table, right: pa.Table) -> bool:
    """Compare bit by bit: NaN is NaN."""
    return left.to_pylist().__repr__() == right.to_pylist().__repr__()


def test_rows_identity_and_digest_stay(manual: lakeward.Workspace) -> None:
    dataset = worn(manual)
    before, digest, head = whole(dataset), dataset.digest(), dataset.record.head_version
    assert len(delete_files(table_of(manual, dataset))) >= 8
    (done,) = compact(manual, dataset)
    assert (done.version, done.dataset) == (head + 1, dataset.name)
    assert done.delete_files >= 8 and done.files == 9 and done.files_after < done.files
    assert same(whole(dataset), before) and dataset.digest() == digest and dataset.verify().equal
    table = table_of(manual, dataset)
    assert delete_files(table) == [] and sum(data_files(table).values()) == dataset.row_count == before.num_rows
    assert same(table.scan().to_arrow().select(before.column_names).sort_by("__row_id"), before), "other engines agree"
    (made_by, *_) = dataset.history()
    assert (made_by.kind, made_by.verb, made_by.writer, made_by.status) == (
        "compact",
        "compact",
        "maintain",
        "committed",
    )
    assert made_by.rows_in == made_by.rows_unchanged == before.num_rows and made_by.rows_added == 0
    assert made_by.row_count == before.num_rows and made_by.published_at is not None
    assert compact(manual, dataset) == [] and dataset.history()[0].version == done.version
    # Ids and positions go on from where they were.
    dataset.write(rows(1_000, 1))
    added = whole(dataset).to_pylist()[-1]
    assert (added["__row_id"], added["__row_index"]) == (before["__row_id"].to_pylist()[-1] + 1, before.num_rows)
    assert unclean(manual, [dataset.name]) == []


def test_it_is_one_replace_snapshot_with_few_manifests(manual: lakeward.Workspace) -> None:
    dataset = made(manual)
    for number in range(20):
        dataset.write(rows(number * 10, 10))
    dataset.write(rows(0, 3, "new"), mode="upsert")
    before = table_of(manual, dataset)
    sequences = {row["data_file"]["file_path"]: row for row in before.inspect.entries().to_pylist()}
    (done,) = compact(manual, dataset)
    table = table_of(manual, dataset)
    snapshot = table.current_snapshot()
    known = {each.snapshot_id for each in before.metadata.snapshots}
    assert {each.snapshot_id for each in table.metadata.snapshots} - known == {snapshot.snapshot_id}
    assert snapshot.summary.operation == Operation.REPLACE and snapshot.summary["lakeward.version"] == str(done.version)
    assert snapshot.parent_snapshot_id == before.current_snapshot().snapshot_id
    assert len(snapshot.manifests(table.io)) <= 2 < len(before.current_snapshot().manifests(before.io))
    counts = {name: int(value) for name, value in snapshot.summary.additional_properties.items() if value.isdecimal()}
    assert counts["total-data-files"] == len(data_files(table)) and counts["total-records"] == sum(
        data_files(table).values()
    )
    assert counts["total-delete-files"] == len(delete_files(table))
    assert counts["deleted-data-files"] == done.files and counts["added-data-files"] == done.files_after
    for row in table.inspect.entries().to_pylist():
        old = sequences.get(row["data_file"]["file_path"])
        if old is not None and row["status"] == 0:
            assert row["sequence_number"] == old["sequence_number"] and row["snapshot_id"] == old["snapshot_id"]


def test_versions_stay_readable_and_since_goes_by_files(manual: lakeward.Workspace) -> None:
    dataset = worn(manual)
    head = dataset.record.head_version
    manual.retention.keep(dataset.record.id, dataset.name, 2, "a test")
    past = {version: whole(dataset, version=version) for version in (2, head - 1, head)}
    deltas = {since: whole(dataset, since=since) for since in range(head)}
    reader = dataset.read(identity=True)
    first = reader.read_next_batch()
    (done,) = compact(manual, dataset)
    assert done.version == head + 1
    assert all(same(whole(dataset, version=version), table) for version, table in past.items())
    assert all(same(whole(dataset, since=since), table) for since, table in deltas.items())
    assert whole(dataset, since=done.version - 1).num_rows == 0, "a compaction is no news"
    rest = pa.Table.from_batches([first, *reader], first.schema).sort_by("__row_id")
    assert same(rest, past[head]), "who was reading reads on"
    # What is new is still in files of its own.
    scan = table_of(manual, dataset).scan(row_filter="__version > 1")
    assert all(task.file.record_count < 50 for task in scan.plan_files())
    assert [each["__op"] for each in dataset.changes(since=head).read_all().to_pylist()] == []


def test_a_compaction_takes_no_version_from_readers(manual: lakeward.Workspace) -> None:
    """Three versions are kept: three that somebody wrote."""
    dataset = made(manual)
    for number in range(5):
        dataset.write(rows(number * 10, 3))
    compact(manual, dataset)
    manual.maintain(dataset.name, older_than=CALM)
    assert [dataset.to_arrow(version=version).num_rows for version in (3, 4, 5, 6)] == [9, 12, 15, 15]


@pytest.mark.parametrize("history", [[], [1], [500]])
def test_nothing_to_do_leaves_nothing(manual: lakeward.Workspace, history: list[int]) -> None:
    dataset = made(manual)
    for count in history:
        dataset.write(rows(0, count))
    files = data_files(table_of(manual, dataset)) if history else {}
    for _ in range(2):
        assert compact(manual, dataset) == [] and compact(manual, dataset, dry_run=True) == []
    assert len(dataset.history()) == len(history)
    assert not history or data_files(table_of(manual, dataset)) == files


def test_a_table_whose_rows_are_all_deleted_has_no_file_then(manual: lakeward.Workspace) -> None:
    dataset = made(manual)
    dataset.write(rows(0, 10))
    table = table_of(manual, dataset)
    delete_rows(table, dict.fromkeys(data_files(table), range(10)))
    dataset.adopt()
    assert dataset.row_count == 0
    (done,) = compact(manual, dataset)
    assert (done.files, done.files_after, done.delete_files) == (1, 0, 1)
    table = table_of(manual, dataset)
    assert data_files(table) == {} and delete_files(table) == [] and dataset.to_arrow().num_rows == 0
    assert compact(manual, dataset) == []
    dataset.write(rows(0, 2))
    assert dataset.row_count == 2 and dataset.verify().equal


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(manual: lakeward.Workspace) -> None:
    dataset = worn(manual)
    table = table_of(manual, dataset)
    files, history = data_files(table), dataset.history()
    (planned,) = compact(manual, dataset, dry_run=True)
    assert planned.version is None and planned.bytes_after is None
    dropped = delete_files(table)
    assert table_of(manual, dataset).metadata_location == table.metadata_location and dataset.history() == history
    (done,) = compact(manual, dataset)
    assert (done.files, done.bytes, done.delete_files, done.files_after) == (
        planned.files,
        planned.bytes,
        planned.delete_files,
        planned.files_after,
    )
    after = table_of(manual, dataset)
    gone = {*files, *dropped} - {*data_files(after), *delete_files(after)}
    text = "\n".join(planned.actions)
    assert len(gone) == done.files + done.delete_files and all(path in text for path in gone)
    assert not any(path in text for path in {*files, *dropped} - gone)


def test_delete_files_for_several_data_files_stay_while_one_of_those_does(manual: lakeward.Workspace) -> None:
    dataset = made(manual)
    dataset.write(rows(0, 1_000))
    dataset.write(rows(1_000, 10))
    engine = OtherEngine(manual, dataset)
    large, small = sorted(data_files(engine.table), key=lambda path: -data_files(engine.table)[path])
    delete_rows(engine.table, {large: [3, 4, 5], small: [0, 1, 2, 3, 4, 9]})
    dataset.adopt()
    shared = delete_files(engine.table)
    before, digest = whole(dataset), dataset.digest()
    assert before.num_rows == 1_001 and len(shared) == 1
    (done,) = compact(manual, dataset)
    assert (done.files, done.delete_files) == (1, 0), "the small one has lost most of its rows"
    assert delete_files(engine.table) == shared and large in data_files(engine.table)
    assert same(whole(dataset), before) and dataset.digest() == digest and dataset.verify().equal
    delete_rows(engine.table, {large: list(range(100, 500))})
    dataset.adopt()
    (done,) = compact(manual, dataset)
    assert done.delete_files == 2 and delete_files(engine.table) == []
    assert dataset.row_count == dataset.to_arrow().num_rows == 601 and dataset.verify().equal


def test_delete_files_that_another_engine_left_behind_go(manual: lakeward.Workspace) -> None:
    """PyIceberg takes data files away and leaves the delete files that were for them."""
    dataset = made(manual)
    dataset.write(rows(0, 100))
    engine = OtherEngine(manual, dataset)
    large = next(iter(data_files(engine.table)))
    delete_rows(engine.table, {large: [7]})
    dataset.adopt()
    engine.table.overwrite(engine.table.scan().to_arrow())
    dataset.adopt()
    before = whole(dataset)
    assert delete_files(engine.table) and large not in data_files(engine.table)
    (done,) = compact(manual, dataset)
    assert (done.files, done.files_after) == (0, 0) and done.delete_files >= 1
    assert delete_files(engine.table) == [] and same(whole(dataset), before)
    assert compact(manual, dataset) == []


@pytest.mark.parametrize("current", [True, False])
def test_a_copy_on_iceberg_is_compacted_if_it_is_current(manual: lakeward.Workspace, current: bool) -> None:
    dataset = made(manual)
    for number in range(4):
        dataset.write(rows(number * 10, 10))
    dataset.copy_to("postgres")
    with manual.database.transaction() as connection:
        connection.exec_driver_sql(
            "UPDATE lakeward.routes SET mode = 'pg', primary_arm = 'postgres' WHERE dataset_id = %s",
            (dataset.record.id,),
        )
    if not current:
        dataset.write(rows(100, 1))
    before, history = whole(dataset), len(dataset.history())
    done = compact(manual, dataset)
    assert [each.files for each in done] == ([4] if current else [])
    assert len(dataset.history()) == history + current
    assert same(whole(dataset), before) and dataset.verify().equal
    if current:
        assert set(dataset.verify().digests) == {"postgres", "iceberg"}, "both arms hold the new version"
    dataset.write(rows(200, 1))
    assert dataset.row_count == before.num_rows + 1


def test_what_another_engine_did_meanwhile_is_never_lost(manual: lakeward.Workspace, compacting: Compacting) -> None:
    dataset = worn(manual)
    engine = OtherEngine(manual, dataset)
    before = whole(dataset)
    foreign: list[int] = []

    def meddle() -> None:
        foreign.append(engine.append({"id": 5_000, "__row_id": 5_000, "__row_index": 5_000}))

    meddled = compacting("manual", AtStep("prepare:files", meddle))
    report = meddled.maintain(dataset.name, older_than=CALM)
    assert report.compacted == [] and "diverged" in report.failures[0].error
    assert dataset.record.status == "diverged" and engine.main == foreign[0]
    assert same(whole(dataset), before), "reads stay at our version"
    assert manual.maintain(dataset.name, older_than=CALM).compacted == []
    dataset.adopt(renumber=True)
    assert dataset.row_count == before.num_rows + 1
    assert compact(manual, dataset) is not None and dataset.verify().equal


def test_another_engine_compacts_meanwhile(manual: lakeward.Workspace, compacting: Compacting) -> None:
    dataset = worn(manual)
    engine = OtherEngine(manual, dataset)
    before = whole(dataset)
    meddled = compacting("manual", AtStep("prepare:files", lambda: engine.compact()))
    report = meddled.maintain(dataset.name, older_than=CALM)
    assert report.compacted == [] and report.failures == [] and dataset.record.status == "ok"
    assert same(whole(dataset), before) and dataset.verify().equal and branches(manual, table_ref(dataset.record)) == []
    dataset.write(rows(9_000, 1))
    assert dataset.row_count == before.num_rows + 1


def test_partitions_stay_apart(manual: lakeward.Workspace) -> None:
    name = f"main.compaction.d{next(_numbers)}"
    dataset = manual.create_dataset(name, COLUMNS, ["id"], arm="iceberg", partition_by=["bucket(3, id)"])
    for number in range(6):
        dataset.write(rows(number * 20, 30, f"{number}"), mode="upsert")
    before, digest = whole(dataset), dataset.digest()
    (done,) = compact(manual, dataset)
    assert same(whole(dataset), before) and dataset.digest() == digest and dataset.verify().equal
    table = table_of(manual, dataset)
    parts = [str(task.file.partition) for task in table.scan().plan_files()]
    assert len(set(parts)) == 3 and done.files_after >= 3 and done.files > done.files_after
    assert same(table.scan().to_arrow().select(before.column_names).sort_by("__row_id"), before)
    dataset.write(rows(0, 200, "last"), mode="upsert")
    assert dataset.row_count == 200 and dataset.verify().equal


def test_files_that_differ_are_refused(manual: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit is no ornament: a rewriting that loses one row, or one value, does not become a version."""
    dataset = worn(manual)
    before, files = whole(dataset), set(Path(dataset.locate()["iceberg"]["location"][7:]).rglob("*.parquet"))
    batches = Compactor._batches

    def tampered(self: Compactor, *of: Any) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches(self, *of)):
            yield batch.slice(1) if number == 0 else batch

    monkeypatch.setattr(Compactor, "_batches", tampered)
    report = manual.maintain(dataset.name, older_than=CALM)
    assert report.compacted == [] and "hold other rows" in report.failures[0].error

    def renumbered(self: Compactor, *of: Any) -> Iterator[pa.RecordBatch]:
        for batch in batches(self, *of):
            ids = batch.schema.get_field_index("__version")
            yield batch.set_column(ids, batch.schema.field(ids), pa.repeat(pa.scalar(1), batch.num_rows))

    monkeypatch.setattr(Compactor, "_batches", renumbered)
    report = manual.maintain(dataset.name, older_than=CALM)
    assert "hold other rows" in report.failures[0].error
    monkeypatch.undo()
    assert same(whole(dataset), before) and dataset.history()[0].status == "aborted"
    assert set(Path(dataset.locate()["iceberg"]["location"][7:]).rglob("*.parquet")) == files, "nothing is left of it"
    assert len(compact(manual, dataset)) == 1 and unclean(manual, [dataset.name]) == []


def test_tables_with_deletes_by_value_are_left_alone(
    manual: lakeward.Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lakeward")
    dataset = worn(manual)
    arm: Any = manual.storage.routing.arm("iceberg")
    ref, policy = table_ref(dataset.record), CompactionPolicy().thorough()
    table = table_of(manual, dataset)
    assert arm._compactor.look(table, ref, table.current_snapshot().snapshot_id, policy) is not None
    file = next(iter(data_files(table)))
    snapshot = delete_rows(table, {file: [0]}, DataFileContent.EQUALITY_DELETES)
    assert arm._compactor.look(table_of(manual, dataset), ref, snapshot, policy) is None
    assert f"dataset {dataset.name}: its Iceberg table is not compacted: another engine has deleted rows" in caplog.text
