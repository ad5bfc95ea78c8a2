"""Which arm a reader's flag sends it to, and what a reader in shadow finds, without anybody noticing who reads."""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import lakeward
from lakeward.control.parity import ParityCheck, ParityChecks
from lakeward.errors import ArmNotCurrent, StorageError
from lakeward.storage.requests import ReadRequest
from lakeward.storage.shadow import Sampler

COLUMNS = {"id": "long", "note": "string"}
ROWS = [{"id": number, "note": f"n{number}"} for number in range(500)]


@pytest.fixture(scope="module")
def shared(postgres: Any, short_root: Path) -> Iterator[lakeward.Workspace]:
    """One workspace for all tests here, each with datasets of its own."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE shadow")
    url = postgres.url.replace("/lakeward?", "/shadow?", 1)
    root = short_root / "shadow"
    with lakeward.open(root / "home", database_url=url, warehouse=root / "warehouse") as workspace:
        workspace.flags.set(writer="ingest.api", mode="dual")
        yield workspace


@pytest.fixture
def mirrored(shared: lakeward.Workspace, request: pytest.FixtureRequest) -> lakeward.Dataset:
    """A dataset that is served by Postgres and mirrored to Iceberg, with rows."""
    name = "".join(character if character.isalnum() else "_" for character in request.node.name)
    dataset = shared.create_dataset(f"main.shadow.{name}", COLUMNS, ["id"])
    dataset.write(ROWS)
    return dataset


def prefer(workspace: lakeward.Workspace, dataset: lakeward.Dataset, value: str, *readers: str) -> None:
    for reader in readers or ("api.read",):
        workspace.flags.set(reader=reader, prefer=value, dataset=dataset.name)


def found(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> list[ParityCheck]:
    """Return what comparisons of reads have found, oldest first, when all of them are through."""
    workspace.storage.shadow.settle()
    return ParityChecks(workspace.database).newest(dataset.record.id, "read")[::-1]


def counted(workspace: lakeward.Workspace, name: str, read: Callable[[], object]) -> int:
    before = workspace.metrics().get(name, 0)
    read()
    return workspace.metrics().get(name, 0) - before


def spoil(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> None:
    """Change one row under the feet of the Postgres arm."""
    with psycopg.connect(workspace.database.libpq_url) as connection:
        changed = connection.execute(
            "UPDATE lakeward.dataset_rows SET data = jsonb_set(data, '{note}', '\"other\"') "
            "WHERE dataset_id = %(id)s AND data ->> 'id' = '7'",
            {"id": dataset.record.id},
        )
        assert changed.rowcount == 1


def test_a_reader_is_sent_where_its_flag_says(
    shared: lakeward.Workspace, mirrored: lakeward.Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    reads = 'lakeward_reads_total{{arm="{}",kind="{}",reader="{}"}}'
    assert counted(shared, reads.format("postgres", "scan", "api.read"), mirrored.to_arrow) == 1
    prefer(shared, mirrored, "iceberg", "api.read", "api.preview", "api.changes", "pipelines.source")
    whole = (mirrored.record, ReadRequest())
    for kind, reader, read in (
        ("scan", "api.read", mirrored.to_arrow),
        ("filtered", "api.read", lambda: mirrored.to_arrow(where="note = 'n7'")),
        ("point", "api.read", lambda: mirrored.to_arrow(where="note = 'n7' AND id IN (7, 8)")),
        ("point", "api.read", lambda: mirrored.to_arrow(where="__row_id = 7")),
        ("since", "api.read", lambda: mirrored.to_arrow(since=1)),
        ("first", "api.preview", mirrored.preview),
        ("changes", "api.changes", lambda: mirrored.changes(0)),
        ("scan", "pipelines.source", lambda: shared.storage.in_place([whole], reader="pipelines.source")),
    ):
        assert counted(shared, reads.format("iceberg", kind, reader), read) == 1
    # The mirror misses a write: whoever prefers it is served by the other arm, and told once.
    shared.replication.reroute(mirrored.record, "pg")
    mirrored.write([{"id": 1_000, "note": "late"}])
    fallbacks = 'lakeward_read_fallbacks_total{arm="iceberg",reader="api.read"}'
    with caplog.at_level(logging.WARNING, "lakeward"):
        assert counted(shared, fallbacks, lambda: mirrored.to_arrow()["id"].to_pylist().index(1_000)) == 1
        assert shared.storage.in_place([(mirrored.record, ReadRequest())], reader="pipelines.source") == [None]
    assert caplog.messages == [
        f"dataset {mirrored.name}: version 3 is read from the postgres arm, since the iceberg arm does not hold it"
    ]
    assert sorted(row["id"] for row in mirrored.changes(1).read_all().to_pylist()) == [1_000]
    with pytest.raises(ArmNotCurrent, match="that arm holds version 1, version 3 was asked for"):
        mirrored.to_arrow(arm="iceberg")
    assert counted(shared, fallbacks, lambda: mirrored.to_arrow(version=1)) == 0


def test_where_no_arm_holds_the_head_nobody_reads_zero_rows(
    shared: lakeward.Workspace, mirrored: lakeward.Dataset
) -> None:
    with psycopg.connect(shared.database.libpq_url) as connection:
        connection.execute("DELETE FROM lakeward.arm_versions WHERE dataset_id = %(id)s", {"id": mirrored.record.id})
    for read in (mirrored.to_arrow, mirrored.preview, lambda: mirrored.changes(0)):
        with pytest.raises(ArmNotCurrent, match="no arm holds version 1"):
            read()


def test_equal_arms_are_found_equal_whatever_is_read(shared: lakeward.Workspace, mirrored: lakeward.Dataset) -> None:
    prefer(shared, mirrored, "shadow", "api.read", "api.preview", "api.changes", "pipelines.source")
    mirrored.write([{"id": 3, "note": "new"}, {"id": 500, "note": "x"}], mode="upsert")
    record = mirrored.record
    assert shared.storage.in_place([(record, ReadRequest())], reader="pipelines.source") == [None], (
        "it is streamed, to be compared"
    )
    for read in (
        mirrored.to_arrow,
        lambda: mirrored.to_arrow(columns=["note"], where="id < 10", since=1, identity=True),
        lambda: mirrored.preview(5, where="id > 3"),
        lambda: mirrored.changes(1).read_all(),
        lambda: mirrored.changes(0, identity=True).read_all(),
        lambda: shared.storage.read(record, reader="pipelines.source").read_all(),
    ):
        read()
        # So many at once are not compared.
        shared.storage.shadow.settle()
    checks = found(shared, mirrored)
    assert [(each.equal, each.rows) for each in checks] == [
        (True, 501),
        (True, 1),
        (True, 5),
        (True, 3),
        (True, 501),
        (True, 501),
    ]
    details = checks[0].details
    assert (details["reader"], details["primary"], sorted(details["arms"])) == (
        "api.read",
        "postgres",
        ["iceberg", "postgres"],
    )
    for side in details["arms"].values():
        assert side["rows"] == 501 and 0 < side["first_batch_seconds"] <= side["seconds"]


def test_a_difference_is_found_and_never_noticed_by_who_reads(
    shared: lakeward.Workspace, mirrored: lakeward.Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    prefer(shared, mirrored, "shadow")
    spoil(shared, mirrored)
    mismatches = 'lakeward_shadow_reads_total{outcome="mismatch",reader="api.read"}'

    def read() -> None:
        rows = mirrored.to_arrow()
        assert {row["id"]: row["note"] for row in rows.to_pylist()}[7] == "other" and rows.num_rows == 500
        shared.storage.shadow.settle()

    with caplog.at_level(logging.ERROR, "lakeward"):
        assert counted(shared, mismatches, read) == 1
    [check] = found(shared, mirrored)
    assert (check.equal, check.rows) == (False, 500)
    [sample] = check.details["samples"]
    assert sample["values"] == {"postgres": "other", "iceberg": "n7"}
    assert "differs from the iceberg arm" in caplog.text
    assert ParityChecks(shared.database).mismatch(mirrored.record.id) == check
    # What is read of other columns is equal.
    mirrored.to_arrow(columns=["id"])
    assert [each.equal for each in found(shared, mirrored)] == [False, True]


def test_a_difference_that_a_rule_accepts_counts_as_none_until_it_expires(
    shared: lakeward.Workspace, mirrored: lakeward.Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    prefer(shared, mirrored, "shadow")
    spoil(shared, mirrored)
    until = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    shared.comparisons.ignore(mirrored.name, "note", reason="it is rewritten", until=until)
    accepted = 'lakeward_shadow_reads_total{outcome="accepted",reader="api.read"}'
    assert counted(shared, accepted, lambda: mirrored.to_arrow() and shared.storage.shadow.settle()) == 1
    # A filter over that column picks other rows on each arm: nothing is known of the rest.
    for narrowed in ({"columns": ["note"]}, {"columns": ["id"]}, {"where": "note = 'other'"}):
        mirrored.to_arrow(**narrowed)
        # Comparisons run beside each other: which of two is written down first, nobody knows.
        shared.storage.shadow.settle()
    checks = found(shared, mirrored)
    assert [each.equal for each in checks] == [True, True, True, None]
    assert [each.details.get("ignored") for each in checks] == [["note"], ["note"], None, None]
    assert "filter asks for note" in checks[-1].details["error"]
    assert ParityChecks(shared.database).mismatch(mirrored.record.id) is None
    with psycopg.connect(shared.database.libpq_url) as connection:
        connection.execute(
            "UPDATE lakeward.ignore_rules SET until = now() WHERE dataset_id = %s", (mirrored.record.id,)
        )
    with caplog.at_level(logging.ERROR, "lakeward"):
        mirrored.to_arrow()
        check = found(shared, mirrored)[-1]
    assert (check.equal, check.details["expired_rules"]) == (False, ["note"])
    assert "the rule for note has expired" in caplog.text
    shared.comparisons.ignore(mirrored.name, "note", reason="it is rewritten", until=until)
    with psycopg.connect(shared.database.libpq_url) as connection:
        connection.execute(
            "DELETE FROM lakeward.dataset_rows WHERE dataset_id = %s AND data ->> 'id' = '8'", (mirrored.record.id,)
        )
    mirrored.to_arrow()
    # A row that is missing is never accepted.
    assert found(shared, mirrored)[-1].equal is False


def test_an_arm_that_fails_is_no_difference(
    shared: lakeward.Workspace, mirrored: lakeward.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefer(shared, mirrored, "shadow")

    def broken(*_: object) -> pa.RecordBatchReader:
        raise StorageError("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(shared.storage.routing.arm("iceberg"), "scan", broken)
        assert mirrored.to_arrow().num_rows == 500
        [check] = found(shared, mirrored)
    assert (check.equal, check.details["error"]) == (None, "StorageError: the store is away")
    # Nor is a version that goes while it is compared, as that of an arm that is drained.
    spoil(shared, mirrored)
    reader = mirrored.read()
    with psycopg.connect(shared.database.libpq_url) as connection:
        connection.execute(
            "DELETE FROM lakeward.arm_versions WHERE dataset_id = %(id)s AND arm = 'iceberg'",
            {"id": mirrored.record.id},
        )
    assert reader.read_all().num_rows == 500
    checks = found(shared, mirrored)
    assert [each.equal for each in checks] == [None, None]
    assert checks[1].details["error"].startswith("ArmNotCurrent: ")
    # Nor is a mirror that is behind.
    behind = 'lakeward_shadow_reads_total{outcome="behind",reader="api.read"}'
    assert counted(shared, behind, mirrored.to_arrow) == 1
    assert len(found(shared, mirrored)) == 2
    assert ParityChecks(shared.database).mismatch(mirrored.record.id) is None


def test_a_slow_arm_does_not_hold_who_reads(
    shared: lakeward.Workspace, mirrored: lakeward.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefer(shared, mirrored, "shadow")
    arm, go_on = shared.storage.routing.arm("iceberg"), threading.Event()
    scan = arm.scan

    def slow(*asked: Any) -> pa.RecordBatchReader:
        assert go_on.wait(30)
        return scan(*asked)

    monkeypatch.setattr(arm, "scan", slow)
    assert mirrored.to_arrow().num_rows == 500
    assert ParityChecks(shared.database).newest(mirrored.record.id, "read") == []
    go_on.set()
    assert [each.equal for each in found(shared, mirrored)] == [True]
    # One that takes longer than the limit is given up.
    go_on.clear()
    monkeypatch.setattr(shared.storage.shadow, "_limit_seconds", 0.05)
    assert mirrored.to_arrow().num_rows == 500
    newest = found(shared, mirrored)[-1]
    go_on.set()
    assert (newest.equal, newest.details["error"]) == (
        None,
        "the other arm took longer than the reader by more than 0.05 s",
    )


def test_who_stops_reading_leaves_nothing(shared: lakeward.Workspace, mirrored: lakeward.Dataset) -> None:
    prefer(shared, mirrored, "shadow")
    reader = mirrored.read()
    reader.read_next_batch()
    del reader
    mirrored.read()
    shared.storage.shadow.settle()
    assert shared.storage.shadow._running == set() and found(shared, mirrored) == []


def test_a_share_of_the_reads_is_compared(
    shared: lakeward.Workspace, mirrored: lakeward.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    for share, picked in ((0.0, []), (0.25, [3, 7]), (0.5, [1, 3, 5, 7]), (1.0, list(range(8)))):
        sampler = Sampler(share)
        assert [number for number in range(8) if sampler()] == picked
    prefer(shared, mirrored, "shadow")
    monkeypatch.setattr(shared.storage.shadow, "sampled", iter([True, False, True]).__next__)
    for _ in range(3):
        mirrored.to_arrow()
    assert len(found(shared, mirrored)) == 2
