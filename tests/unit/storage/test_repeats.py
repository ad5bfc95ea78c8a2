"""Requests with an idempotency key: what a repeated one is told, and which key stands for another request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import lakeward
from lakeward.errors import EmptyReplace, KeyReused, UnknownObject, UsageError
from lakeward.storage.requests import BuildResult, Output, WriteResult
from lakeward.types.conform import to_reader
from support.databases import WORKSPACE, drop_database, made_database

ROWS = [{"id": 1, "note": "a"}, {"id": 2, "note": None}]

Make = Callable[..., lakeward.Dataset]


@pytest.fixture(scope="module")
def ws(postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    url = made_database(postgres, WORKSPACE)
    root = tmp_path_factory.mktemp("repeats")
    with lakeward.open(root / "home", database_url=url, warehouse=root / "warehouse") as opened:
        yield opened
    drop_database(postgres.url, url)


@pytest.fixture
def make(ws: lakeward.Workspace, request: pytest.FixtureRequest) -> Make:
    """Makes a dataset on an arm, or on both."""

    def create(arm: str = "postgres", name: str = "d") -> lakeward.Dataset:
        # A schema of each test's own.
        full = f'main."{request.node.name}".{name}'
        mirrored = arm == "dual"
        dataset = ws.create_dataset(full, {"id": "long", "note": "string"}, ["id"], arm=None if mirrored else arm)
        if mirrored:
            ws.flip(full).run(to="iceberg", until="mirror")
        return dataset

    return create


def keyed(dataset: lakeward.Dataset, key: str | None, rows: list[dict[str, Any]], mode: str = "append") -> Output:
    opened = lambda: to_reader(rows, dataset.schema, dataset=dataset.name)  # noqa: E731
    return Output(dataset.record, mode, opened, idempotency_key=key)


@pytest.mark.parametrize("arm", ["postgres", "iceberg", "dual"])
@pytest.mark.parametrize("mode", ["append", "replace", "upsert", "changes", "delete"])
def test_a_repeated_request_changes_nothing(make: Make, arm: str, mode: str) -> None:
    dataset = make(arm)
    dataset.write([{"id": 2, "note": "b"}, {"id": 3, "note": "c"}])
    rows: list[dict[str, Any]] = {
        "delete": [{"id": 2}],
        "changes": [{**ROWS[0], "__op": "insert"}, {**ROWS[1], "__op": "delete"}],
    }.get(mode, ROWS)
    first = dataset.write(rows, mode, idempotency_key="k")
    assert first.committed and not first.repeated
    dataset.write([{"id": 9, "note": "since"}], "upsert")
    before, past = dataset.to_arrow(identity=True).sort_by("__row_id"), len(dataset.history())
    for again in (list(reversed(rows)), pa.Table.from_pylist(rows), iter(rows)):
        repeated = dataset.write(again, mode, idempotency_key="k")
        assert repeated == first and repeated.repeated
    assert dataset.to_arrow(identity=True).sort_by("__row_id").equals(before)
    assert len(dataset.history()) == past, "no transaction is opened for it"


def test_what_changes_nothing_is_remembered(make: Make) -> None:
    dataset = make()
    first = dataset.write([], idempotency_key="empty")
    assert (first.version, first.committed, first.repeated) == (0, False, False)
    same = dataset.write(ROWS) and dataset.write(ROWS, "upsert", idempotency_key="same")
    assert (same.committed, same.rows_unchanged) == (False, 2)
    dataset.write([{"id": 1, "note": "changed"}], "upsert")
    assert dataset.write(ROWS, "upsert", idempotency_key="same") == same
    assert dataset.write([], idempotency_key="empty") == first
    assert dataset.to_arrow(where="note = 'changed'").num_rows == 1


def test_what_fails_is_not_remembered(make: Make) -> None:
    dataset = make()
    with pytest.raises(EmptyReplace):
        dataset.write([], "replace", idempotency_key="k")
    with pytest.raises(lakeward.errors.ValueRefused):
        dataset.write([{"id": 2**63, "note": "x"}], idempotency_key="k")
    assert not dataset.write(ROWS, idempotency_key="k").repeated
    assert dataset.row_count == 2


@pytest.mark.parametrize(
    ("rows", "mode", "says"),
    [
        ([{"id": 1, "note": "A"}, ROWS[1]], "append", "stands for a request with other rows: as many, other values"),
        (ROWS[:1], "append", "stands for a request with other rows: 2, not 1"),
        ([*ROWS, *ROWS], "append", "other rows: 2, and these are 4"),
        ([], "append", "other rows: 2, and these are 0"),
        (ROWS, "upsert", "a request of ingest.api in mode append, and this is one of ingest.api in mode upsert"),
    ],
)
def test_a_key_of_another_request_is_refused(make: Make, rows: list[dict[str, Any]], mode: str, says: str) -> None:
    dataset = make()
    dataset.write(ROWS, idempotency_key="k")
    with pytest.raises(KeyReused, match=says) as refused:
        dataset.write(rows, mode, idempotency_key="k")
    assert refused.value.exit_code == 2 and "at version 1" in (refused.value.safe or "")
    assert (dataset.version, dataset.row_count, len(dataset.history())) == (1, 2, 1)


def test_another_writer_is_refused(ws: lakeward.Workspace, make: Make, tmp_path: Path) -> None:
    dataset = make()
    file = tmp_path / "rows.csv"
    file.write_text("id,note\n1,a\n2,\n")
    dataset.write(ROWS, idempotency_key="k")
    with pytest.raises(KeyReused, match=r"of ingest\.api .* one of dataset\.import"):
        ws.import_file(dataset.name, file, idempotency_key="k")
    first = ws.import_file(dataset.name, file, idempotency_key="file")
    again = ws.import_file(dataset.name, file, idempotency_key="file")
    assert (first.repeated, again.repeated, again.version, again.rows_read) == (False, True, first.version, 2)
    assert dataset.row_count == 4


def test_keys_belong_to_a_dataset_and_are_any_text(make: Make) -> None:
    one, other = make(name="one"), make(name="other")
    keys = ["x" * 200, "ü" * 200, " ", "'; DROP TABLE x; --", "a\nb", "%s :key {}", "🦊"]
    for dataset in (one, other):
        assert [dataset.write(ROWS, idempotency_key=key).repeated for key in keys] == [False] * len(keys)
        assert [dataset.write(ROWS, idempotency_key=key).repeated for key in keys] == [True] * len(keys)
    assert one.row_count == other.row_count == 2 * len(keys)


@pytest.mark.parametrize(("key", "says"), [("", "0 characters"), ("x" * 201, "201"), ("\0", "NUL"), ("\udfff", "half")])
def test_what_is_no_key(make: Make, key: str, says: str) -> None:
    dataset = make()
    with pytest.raises(UsageError, match=says):
        dataset.write(ROWS, idempotency_key=key)
    assert dataset.history() == []


def build(ws: lakeward.Workspace, *outputs: Output) -> BuildResult:
    return ws.storage.build(outputs, writer="test")


def test_a_build_is_repeated_as_a_whole(ws: lakeward.Workspace, make: Make) -> None:
    a, b, c = make("postgres", "a"), make("iceberg", "b"), make(name="c")
    first = build(ws, keyed(a, "k", ROWS), keyed(b, "k", ROWS[:1]), keyed(c, "k", []))
    again = build(ws, keyed(c, "k", []), keyed(b, "k", ROWS[:1]), keyed(a, "k", ROWS))
    assert again.transactions == first.transactions and again.build_id == first.build_id
    assert [each.repeated for each in again.transactions] == [True] * 3
    assert [each.committed for each in again.transactions] == [True, True, False]
    d = make(name="d")
    for outputs, says in (
        ((keyed(a, "k", ROWS), keyed(d, "k", ROWS)), "did not write the same datasets"),
        ((keyed(a, "k", ROWS), keyed(b, "k", ROWS)), "other rows: 1, not 2"),
    ):
        with pytest.raises(KeyReused, match=says):
            build(ws, *outputs)
    with pytest.raises(UsageError, match="give a key to every output"):
        build(ws, keyed(a, "new", ROWS), keyed(d, None, ROWS))
    build(ws, keyed(d, "of another build", ROWS))
    with pytest.raises(KeyReused, match="did not write the same datasets"):
        build(ws, keyed(a, "k", ROWS), keyed(d, "of another build", ROWS))
    assert [each.row_count for each in (a, b, c, d)] == [2, 1, 0, 2]


def test_threads_with_one_key_write_once(make: Make) -> None:
    dataset, results = make("iceberg"), []
    threads = [
        threading.Thread(target=lambda: results.append(dataset.write(ROWS, idempotency_key="k"))) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 5 and len(set(results)) == 1
    assert sorted(each.repeated for each in results) == [False] + [True] * 4
    assert dataset.row_count == 2


def test_a_key_is_forgotten_when_its_time_is_over(ws: lakeward.Workspace, make: Make) -> None:
    dataset = make()
    dataset.write(ROWS, idempotency_key="old")
    dataset.write(ROWS, idempotency_key="new")
    with psycopg.connect(ws.database.libpq_url) as connection:
        (days,) = connection.execute(
            "UPDATE lakeward.idempotency_keys SET keep_until = now() WHERE key = 'old' AND dataset_id = %s "
            "RETURNING extract(day FROM keep_until - decided_at)",
            (dataset.record.id,),
        ).fetchone() or (None,)
    assert days == 0

    def kept() -> list[str]:
        with psycopg.connect(ws.database.libpq_url) as connection:
            found = connection.execute(
                "SELECT key FROM lakeward.idempotency_keys WHERE dataset_id = %s ORDER BY key", (dataset.record.id,)
            )
            return [row[0] for row in found]

    planned = ws.maintain(dataset.name, dry_run=True).totals()
    assert planned["key"] == (1, 0) and kept() == ["new", "old"]
    # Whether or not it was removed: its time is over.
    assert not dataset.write([{"id": 5, "note": "other"}], "upsert", idempotency_key="old").repeated
    assert kept() == ["new", "old"]
    with psycopg.connect(ws.database.libpq_url) as connection:
        connection.execute("UPDATE lakeward.idempotency_keys SET keep_until = now() WHERE key = 'old'")
    assert ws.maintain(dataset.name).totals()["key"] == (1, 0)
    assert "key" not in ws.maintain(dataset.name).totals()
    assert kept() == ["new"] and dataset.write(ROWS, idempotency_key="new").repeated


def test_the_time_is_a_setting(ws: lakeward.Workspace, make: Make, tmp_path: Path) -> None:
    dataset = make()
    settings = tmp_path / "lakeward.toml"
    settings.write_text("[ledger]\nidempotency_days = 0.5\n")
    with lakeward.open(
        database_url=ws.database.libpq_url, warehouse=tmp_path / "warehouse", settings_file=settings
    ) as other:
        other.dataset(dataset.name).write(ROWS, idempotency_key="k")
    with psycopg.connect(ws.database.libpq_url) as connection:
        found = connection.execute(
            "SELECT extract(epoch FROM keep_until - decided_at) / 3600 FROM lakeward.idempotency_keys "
            "WHERE dataset_id = %s",
            (dataset.record.id,),
        ).fetchone()
    assert found is not None and found[0] == 12


def test_a_renamed_dataset_knows_its_keys_and_a_dropped_one_answers_nobody(ws: lakeward.Workspace, make: Make) -> None:
    dataset = make()
    first = dataset.write(ROWS, idempotency_key="k")
    ws.names("dataset").rename(dataset.name, "renamed")
    renamed = ws.dataset(dataset.name.removesuffix("d") + "renamed")
    again: WriteResult = renamed.write(ROWS, idempotency_key="k")
    assert again.repeated and again.dataset == renamed.name and again.version == first.version
    ws.names("dataset").drop(renamed.name)
    with pytest.raises(UnknownObject, match="dropped"):
        renamed.write(ROWS, idempotency_key="k")
