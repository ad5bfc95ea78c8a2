"""Which rows of the Postgres arm go: those that no needed version sees, and never one that it does."""

from __future__ import annotations

import random
from collections.abc import Callable

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeward
from lakeward.control.retention import HeldVersion
from lakeward.storage.arms.postgres.upkeep import dead_ranges
from support.past import Past

MakePast = Callable[..., Past]


def stored(past: Past) -> list[tuple[int, int, int | None]]:
    with psycopg.connect(past.workspace.database.libpq_url) as connection:
        return connection.execute(
            "SELECT row_id, version, until FROM lakeward.dataset_rows WHERE dataset_id = %s ORDER BY row_id",
            (past.dataset.record.id,),
        ).fetchall()


def bases(past: Past, arm: str = "postgres") -> dict[int, int]:
    with psycopg.connect(past.workspace.database.libpq_url) as connection:
        return dict(
            connection.execute(
                "SELECT version, base_version FROM lakeward.arm_versions "
                "WHERE dataset_id = %s AND arm = %s AND expired_at IS NULL",
                (past.dataset.record.id, arm),
            ).fetchall()
        )


def mark(past: Past, row_id: int, until: int) -> None:
    """End a row at a version, as a keyed write does."""
    with psycopg.connect(past.workspace.database.libpq_url) as connection:
        connection.execute(
            "UPDATE lakeward.dataset_rows SET until = %s WHERE dataset_id = %s AND row_id = %s AND until IS NULL",
            (until, past.dataset.record.id, row_id),
        )


held = st.builds(lambda base, more: (base, base + more), st.integers(1, 30), st.integers(0, 8))


@given(st.lists(held, max_size=6), st.integers(0, 40))
def test_dead_ranges_are_what_no_needed_version_sees(pairs: list[tuple[int, int]], head: int) -> None:
    needed = [HeldVersion("postgres", version, base, None, False, None) for base, version in pairs]
    head = max([head, *(version for _, version in pairs)])
    dead = {version for low, high in dead_ranges(needed, head) for version in range(low, high + 1)}
    seen = {version for base, newest in pairs for version in range(base, newest + 1)}
    assert not dead & seen
    # Above the newest needed one there is nothing to look for; with none needed, all that was ever committed is dead.
    limit = max(seen, default=head)
    assert dead == set(range(1, limit + 1)) - seen


def test_any_history_leaves_exactly_what_is_seen(past: MakePast, rng: random.Random) -> None:
    """Random writes, marks, copies and kept versions: every row that is left is seen by a readable version."""
    for _ in range(4):
        subject = past("postgres", "append")
        for _ in range(rng.randrange(3, 10)):
            action = rng.choice(["append", "append", "replace", "mark", "copy"])
            if action == "copy":
                subject.digests[subject.dataset.copy_to("iceberg").version] = subject.dataset.digest()
            elif action == "mark":
                live = [row_id for row_id, _, until in stored(subject) if until is None]
                version = subject.write(1000)
                mark(subject, rng.choice(live), version)
                subject.digests[version] = subject.dataset.digest(version=version)
            else:
                subject.grow(action)
        if rng.random() < 0.5:
            subject.dataset.keep(rng.choice([version for version in subject.digests if version]))
        subject.maintain()
        subject.grow_old()
        subject.maintain()
        readable = subject.readable()
        assert readable == {version: subject.digests[version] for version in readable}
        spans = bases(subject)
        for row in stored(subject):
            _, written, until = row
            seen = [
                version
                for version, base in spans.items()
                if base <= written <= version and (until is None or until > version)
            ]
            assert seen, f"{row} is seen by none of {spans}"
        assert subject.maintain().removed == []


def test_rows_are_deleted_in_chunks(past: MakePast, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = past("postgres")
    for number in range(6):
        subject.write(number * 100, rows=50, mode="replace")
    monkeypatch.setattr("lakeward.storage.arms.postgres.upkeep.CHUNK_ROWS", 7)
    planned = subject.maintain(dry_run=True)
    assert not any(each.kind == "rows" for each in planned.removed), "expired this moment: readers may be at it"
    subject.maintain()
    subject.grow_old()
    planned, done = subject.maintain(dry_run=True), subject.maintain()
    assert [each for each in planned.removed if each.kind == "rows"] == done.removed
    assert [(each.what, each.count) for each in done.removed] == [("rows of versions 1 to 3", 150)]
    assert len(stored(subject)) == 150
    subject.assert_readable([4, 5, 6])


def test_rows_of_an_open_transaction_and_its_marks_stay(past: MakePast, ws: lakeward.Workspace) -> None:
    subject = past("postgres", "append", "append", "append", "append", "append")
    with psycopg.connect(ws.database.libpq_url) as connection:
        connection.execute(
            "INSERT INTO lakeward.dataset_rows (dataset_id, row_id, row_index, version, created_at, data) "
            "VALUES (%s, 999, 999, 6, now(), '{}')",
            (subject.dataset.record.id,),
        )
    mark(subject, 0, 6)
    before = stored(subject)
    subject.maintain()
    subject.grow_old()
    subject.maintain()
    assert stored(subject) == before
    subject.assert_readable([3, 4, 5])


def test_a_reader_that_is_under_way_reads_to_its_end(past: MakePast) -> None:
    subject = past("postgres")
    subject.write(0, rows=200_000)
    subject.grow("replace", "replace", "replace")
    reader = subject.dataset.read(version=1)
    first = next(iter(reader)).num_rows
    subject.maintain()
    subject.grow_old()
    assert [each.count for each in subject.maintain().removed] == [200_000]
    assert first + sum(batch.num_rows for batch in reader) == 200_000
