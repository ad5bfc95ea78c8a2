"""Which versions stay readable: those within the policy always, those that somebody keeps, and every arm's newest."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

import lakeward
from lakeward.control.records import Intent, Window
from lakeward.errors import UnknownVersion, UsageError
from lakeward.storage.arms.iceberg.upkeep import EXPIRE_EVERY
from support.past import KEPT, Past

MakePast = Callable[..., Past]
ARMS = ("postgres", "iceberg")
HISTORY = ("append", "append", "replace", "append", "append", "replace", "append")


@pytest.mark.parametrize("arm", ARMS)
def test_the_newest_stay_and_older_ones_say_that_they_expired(past: MakePast, arm: str) -> None:
    subject = past(arm, *HISTORY)
    subject.assert_readable([1, 2, 3, 4, 5, 6, 7])
    report = subject.maintain()
    assert [each.what for each in report.removed if each.kind == "version"] == ["1", "2", "3", "4"]
    subject.assert_readable([5, 6, 7])
    with pytest.raises(UnknownVersion, match=f"version 2 of dataset {subject.name} has expired") as caught:
        subject.dataset.to_arrow(version=2)
    assert "retention.versions" in str(caught.value)
    # The ledger's past is not the dataset's: it stays.
    assert len(subject.dataset.history()) == len(HISTORY)
    with pytest.raises(UnknownVersion, match="has no committed version 99"):
        subject.dataset.to_arrow(version=99)


@pytest.mark.parametrize("arm", ARMS)
def test_a_dry_run_says_the_same_and_changes_nothing(past: MakePast, arm: str) -> None:
    subject = past(arm, *HISTORY)
    planned = subject.maintain(dry_run=True)
    before = subject.files()
    subject.assert_readable([1, 2, 3, 4, 5, 6, 7])
    done = subject.maintain()
    kinds = ("version", "snapshot")
    assert [each for each in planned.removed if each.kind in kinds] == [
        each for each in done.removed if each.kind in kinds
    ]
    assert before <= subject.files()


@pytest.mark.parametrize("arm", ARMS)
def test_a_version_that_somebody_keeps_stays_until_it_is_let_go(past: MakePast, arm: str) -> None:
    subject = past(arm, *HISTORY)
    assert subject.dataset.keep(2) == 2
    assert subject.dataset.kept() == [2]
    subject.maintain()
    subject.grow_old()
    subject.maintain()
    subject.assert_readable([2, 5, 6, 7])
    with pytest.raises(UnknownVersion, match="no readable version 1 to keep"):
        subject.dataset.keep(1)
    subject.dataset.let_go(2)
    subject.maintain()
    subject.assert_readable([5, 6, 7])


def test_an_open_transaction_keeps_the_versions_that_it_reads(past: MakePast, ws: lakeward.Workspace) -> None:
    source, target = past("iceberg", *HISTORY), past("postgres")
    record = target.dataset.record
    intent = Intent(
        dataset_id=record.id,
        dataset=record.name,
        kind="write",
        verb="append",
        build_id=uuid.uuid4(),
        writer="test",
        windows={source.dataset.record.id: Window(0, 3)},
    )
    opened = ws.ledger.try_open(intent)
    assert opened is not None
    source.maintain()
    source.assert_readable([3, 5, 6, 7])
    ws.ledger.abort(opened.id, opened.fence, "the test is over")
    source.maintain()
    source.assert_readable([5, 6, 7])


def test_the_newest_version_of_an_arm_that_fell_behind_stays(past: MakePast) -> None:
    subject = past("postgres", "append", "replace")
    copied = subject.dataset.copy_to("iceberg").version
    subject.digests[copied] = subject.dataset.digest()
    subject.grow("append", "replace", "append", "append")
    subject.maintain()
    subject.grow_old()
    subject.maintain()
    assert subject.dataset.digest(arm="iceberg", version=copied) == subject.digests[copied]
    # And the next copy goes on from it.
    again = subject.dataset.copy_to("iceberg")
    assert again.committed and subject.dataset.verify().equal


def test_publishing_removes_snapshots_of_expired_versions(past: MakePast) -> None:
    """Without it, what a write costs would grow with every write before it."""
    subject = past("iceberg", "append")
    for number in range(3 * EXPIRE_EVERY):
        subject.dataset.write([{"id": 1000 + number, "note": "more"}])
        assert len(subject.table().metadata.snapshots) <= KEPT + EXPIRE_EVERY + 2
    assert subject.dataset.row_count == 4 + 3 * EXPIRE_EVERY == subject.dataset.to_arrow().num_rows
    newest = subject.dataset.version
    for version in range(newest - KEPT + 1, newest + 1):
        rows = subject.dataset.to_arrow(version=version).num_rows
        assert rows == subject.dataset.row_count - (newest - version)
    manifests = subject.table().current_snapshot().manifests(subject.table().io)
    assert len(manifests) < 2 * EXPIRE_EVERY + 2, "small manifests are merged"


def test_a_grace_shorter_than_a_lease_is_refused(past: MakePast) -> None:
    with pytest.raises(UsageError, match="leases last 1 s"):
        past("iceberg", "append").maintain(grace=0.5)


def test_one_dataset_that_fails_does_not_stop_the_others(past: MakePast, ws: lakeward.Workspace) -> None:
    broken, fine = past("iceberg", *HISTORY), past("iceberg", *HISTORY)
    table = broken.table()
    ws.storage.routing.arm("iceberg")._tables.catalog.drop_table(table.name())
    report = ws.maintain(broken.name, fine.name, older_than=2)
    assert [failure.dataset for failure in report.failures] == [broken.name]
    fine.assert_readable([5, 6, 7])
    assert "is not in the catalog" in report.failures[0].error


def test_a_late_reader_of_an_expired_version_is_told(past: MakePast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows may be gone in part, and fewer rows than there were must never look like the truth."""
    monkeypatch.setattr("lakeward.storage.arms.postgres.arm.LATE_SECONDS", -1.0)
    subject = past("postgres", *HISTORY)
    kept, lost = subject.dataset.read(version=6), subject.dataset.read(version=2)
    subject.maintain()
    subject.grow_old()
    assert any(each.kind == "rows" for each in subject.maintain().removed)
    assert kept.read_all().num_rows == 4
    with pytest.raises(UnknownVersion, match=r"version 2 of dataset .* expired before it was read"):
        lost.read_all()
