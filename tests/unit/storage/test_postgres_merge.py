"""Keyed writes of the Postgres arm: what its key numbers, its marks and its one transaction have to be right about."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import lakeward
from lakeward.clock import Faults
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import DuplicateKey, LakewardError, LeaseLost, ValueRefused
from lakeward.storage.arms.postgres import arm as postgres_arm
from lakeward.storage.arms.postgres import merge
from lakeward.storage.staged_batch import key_columns
from lakeward.testing import AtStep, raise_at
from lakeward.types.digest import Digest
from lakeward.types.key_number import key_number_postgres
from support.crashes import unclean
from support.databases import WORKSPACE, made_database
from support.ledger import expire

COLUMNS = {"id": "long", "note": "string"}
Make = Callable[..., lakeward.Dataset]
Opened = Callable[[Faults], lakeward.Workspace]
VERBS = ("append_new", "upsert", "mirror", "changes", "delete")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def url(postgres: EmbeddedPostgres) -> str:
    return made_database(postgres, WORKSPACE)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merge") / "home"


@pytest.fixture(scope="module")
def ws(url: str, home: Path) -> Iterator[lakeward.Workspace]:
    with lakeward.open(home, database_url=url) as workspace:
        yield workspace


@pytest.fixture
def opened(url: str, home: Path) -> Iterator[Callable[[Faults], lakeward.Workspace]]:
    """Opens the workspace once more, as a process sees it in which something happens at a step."""
    with contextlib.ExitStack() as stack:
        yield lambda faults: stack.enter_context(lakeward.open(home, database_url=url, faults=faults))


@pytest.fixture
def make(ws: lakeward.Workspace) -> Callable[..., lakeward.Dataset]:
    """Makes a dataset of a name of its own."""

    def create(columns: Mapping[str, str] = COLUMNS, key: Sequence[str] = ("id",), arm: str = "postgres") -> Any:
        return ws.create_dataset(f"main.merge.d{next(_numbers)}", columns, primary_key=key, arm=arm)

    return create


@pytest.fixture
def dataset(make: Make) -> lakeward.Dataset:
    """Ten rows at version 1, whose digest is known."""
    made = make()
    made.write(rows(*range(10)))
    made.verify()
    return made


def rows(*ids: int, note: str = "old") -> list[dict[str, Any]]:
    return [{"id": id_, "note": note} for id_ in ids]


def batch(verb: str, *ids: int) -> list[dict[str, Any]]:
    """Return an input that does something with rows that are there and with one that is not."""
    if verb == "delete":
        return [{"id": id_} for id_ in ids]
    if verb == "changes":
        return [{**row, "__op": "delete" if row["id"] % 2 else "update"} for row in rows(*ids, note="new")]
    return rows(*ids, note="new")


def run(dataset: lakeward.Dataset, statement: sql.Composed | str) -> list[tuple[Any, ...]]:
    """Run a statement with `:id` for the dataset's id."""
    text = statement if isinstance(statement, str) else statement.as_string()
    with psycopg.connect(dataset._rooms.database.libpq_url) as connection:
        cursor = connection.execute(text.replace(":id", str(dataset.record.id)))  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


def stored(
    dataset: lakeward.Dataset, columns: str = "row_id, version, until, key, data::text"
) -> list[tuple[Any, ...]]:
    return run(dataset, f"SELECT {columns} FROM lakeward.dataset_rows WHERE dataset_id = :id ORDER BY row_id, version")


def content(dataset: lakeward.Dataset, version: int | None = None) -> list[dict[str, Any]]:
    return dataset.to_arrow(version=version, identity=True).sort_by("__row_index").to_pylist()


def recorded(dataset: lakeward.Dataset) -> Digest:
    (row,) = run(dataset, "SELECT row_count, digest_high, digest_low FROM lakeward.datasets WHERE id = :id")
    return Digest.of_row(row)


@pytest.mark.parametrize("verb", VERBS)
def test_the_digest_of_the_delta_is_that_of_the_rows(dataset: lakeward.Dataset, verb: str) -> None:
    for first in (2, 5, 9):
        dataset.write(batch(verb, first, first + 1, first + 30), mode=verb)
        assert recorded(dataset) == dataset.digest()


def test_an_update_keeps_identity_and_two_versions_back_are_as_they_were(dataset: lakeward.Dataset) -> None:
    versions = {1: content(dataset)}
    dataset.write([*rows(12, 3, 11, note="new"), *rows(4)], mode="upsert")
    versions[2] = content(dataset)
    dataset.write([{"id": 3}, {"id": 5}], mode="delete")
    versions[3] = content(dataset)
    assert {version: content(dataset, version) for version in versions} == versions
    before, after = versions[1][3], versions[2][3]
    assert after == {**before, "note": "new", "__version": 2}
    assert [(row["id"], row["__row_index"], row["__row_id"]) for row in versions[2][10:]] == [
        (12, 10, 10),
        (11, 11, 11),
    ]
    assert versions[2][4] == versions[1][4]


# --- keys


KEYS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [-(2**31), 0, 2**31 - 1],
    "long": [-(2**63), -1, 0, 2**63 - 1],
    "decimal(38,10)": [decimal.Decimal("-1.5"), decimal.Decimal(0), decimal.Decimal("1e27")],
    "decimal(2,2)": [decimal.Decimal("0.50"), decimal.Decimal("-0.05")],
    "string": ["", " ", "a", "A", "ä", "\N{COMBINING DIAERESIS}a", "a\\b\"%s';", "x" * 3000, "\U0001f600"],
    "binary": [b"", b"\0", b"\xff" * 40],
    "uuid": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)],
    "date": [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)],
    "time": [datetime.time(0), datetime.time(23, 59, 59, 999999)],
    "timestamp": [datetime.datetime(1, 1, 1), datetime.datetime(2026, 1, 1, 12, 0, 0, 1)],
    "timestamptz": [
        datetime.datetime(1969, 1, 1, tzinfo=datetime.UTC),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    ],
}


def assert_numbers(dataset: lakeward.Dataset) -> None:
    """Check that every row's number is the one that Postgres makes of its stored key."""
    number = key_number_postgres(key_columns(dataset.record.schema), sql.Identifier("data"))
    found = run(dataset, sql.SQL("SELECT key, {} FROM lakeward.dataset_rows WHERE dataset_id = :id").format(number))
    assert found
    assert all(key is not None and key == made for key, made in found)


@pytest.mark.parametrize("type_", KEYS)
@pytest.mark.parametrize("width", [1, 2])
def test_u01_keys_of_every_type(make: Make, type_: str, width: int) -> None:
    keys = ["k", "%other"][:width]
    dataset = make({"n": "long", "k": type_, "%other": "int"}, keys)
    old = [{"n": 1, "k": value, "%other": 7} for value in KEYS[type_]]
    assert dataset.write(old[1:], mode="append").rows_added == len(old) - 1
    written = dataset.write([{**row, "n": 2} for row in old], mode="upsert")
    assert (written.rows_added, written.rows_updated) == (1, len(old) - 1)
    assert dataset.write([{**row, "n": 2} for row in reversed(old)], mode="mirror").committed is False
    assert_numbers(dataset)
    gone = dataset.write([{name: row[name] for name in keys} for row in old], mode="delete")
    assert (gone.rows_deleted, gone.row_count) == (len(old), 0)
    assert_numbers(dataset)


@pytest.mark.parametrize("mode", ["append", "replace", "copy", "upsert"])
def test_every_write_numbers_its_rows(make: Make, mode: str) -> None:
    arm = "iceberg" if mode == "copy" else "postgres"
    dataset = make(key=["note"], arm=arm)
    new = [{"id": id_, "note": f"note {id_}"} for id_ in range(5)]
    dataset.write(new, mode="append" if mode == "copy" else mode)
    if mode == "copy":
        dataset.copy_to("postgres")
    assert_numbers(dataset)


@pytest.mark.parametrize("verb", VERBS)
def test_keys_with_the_same_number_are_told_apart(make: Make, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    expected = make()
    expected.write(rows(*range(6)))
    wanted = expected.write(batch(verb, 2, 3, 4, 30), mode=verb)
    for module in (postgres_arm, merge):
        monkeypatch.setattr(module, "key_number_duckdb", lambda _columns: "CAST(42 AS BIGINT)")
    dataset = make()
    dataset.write(rows(*range(6)))
    written = dataset.write(batch(verb, 2, 3, 4, 30), mode=verb)
    names = ("rows_added", "rows_updated", "rows_unchanged", "rows_deleted", "rows_skipped", "row_count")
    assert [getattr(written, name) for name in names] == [getattr(wanted, name) for name in names]
    assert dataset.digest() == expected.digest()
    assert {row[0] for row in stored(dataset, "key")} >= {42}


def forget_numbers(dataset: lakeward.Dataset, which: str) -> None:
    """Let rows be as they were before the migration that brought the numbers, and the dataset as it left it."""
    run(dataset, f"UPDATE lakeward.dataset_rows SET key = NULL WHERE dataset_id = :id AND ({which})")
    run(dataset, "UPDATE lakeward.datasets SET unnumbered_to = head_version WHERE id = :id")


@pytest.mark.parametrize("verb", VERBS)
def test_rows_from_before_there_were_numbers_get_theirs(
    dataset: lakeward.Dataset, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    dataset.write(rows(*range(10)), mode="replace")
    forget_numbers(dataset, "version = 1 OR row_id % 3 <> 0")
    monkeypatch.setattr(merge, "FILL_ROWS", 2)
    written = dataset.write(batch(verb, 2, 3, 30), mode=verb)
    assert written.row_count == {"append_new": 11, "upsert": 11, "mirror": 3, "changes": 10, "delete": 8}[verb]
    numbers = stored(dataset, "version, key, (data ->> 'id')::bigint")
    assert all(key == id_ for version, key, id_ in numbers if version > 1)
    assert run(dataset, "SELECT unnumbered_to FROM lakeward.datasets WHERE id = :id") == [(0,)]
    # Nobody matches rows of before a replace any more.
    assert all(key is None for version, key, _ in numbers if version == 1)


def test_numbers_that_are_missing_are_filled_though_the_write_then_fails(
    dataset: lakeward.Dataset, opened: Opened
) -> None:
    forget_numbers(dataset, "true")
    faults = raise_at("prepare:copy", LakewardError("anything"))
    with pytest.raises(LakewardError, match="anything"):
        opened(faults).dataset(dataset.name).write(rows(3, note="new"), mode="upsert")
    assert [row[0] for row in stored(dataset, "key")] == list(range(10))
    assert dataset.write(rows(3, note="new"), mode="upsert").rows_updated == 1


# --- refusals


@pytest.mark.parametrize("verb", VERBS)
def test_u04_a_key_that_the_dataset_holds_twice(ws: lakeward.Workspace, dataset: lakeward.Dataset, verb: str) -> None:
    dataset.write(rows(3, 4, 5))
    before = stored(dataset)
    with pytest.raises(DuplicateKey) as caught:
        dataset.write(batch(verb, 3, 5, 7, 30), mode=verb)
    assert caught.value.fields["where"] == "dataset"
    assert (caught.value.fields["keys"], caught.value.fields["count"]) == ([{"id": "3"}, {"id": "5"}], 2)
    assert stored(dataset) == before
    assert unclean(ws, [dataset.name]) == []
    dataset.write(rows(7, note="new"), mode="upsert")
    assert dataset.to_arrow(where="id = 7")["note"].to_pylist() == ["new"]


@pytest.mark.parametrize("verb", VERBS)
def test_null_and_repeated_keys_of_the_input(dataset: lakeward.Dataset, verb: str) -> None:
    before = stored(dataset)
    with pytest.raises(DuplicateKey) as caught:
        dataset.write(batch(verb, 3, 30, 3), mode=verb)
    assert caught.value.fields["where"] == "input"
    with pytest.raises(ValueRefused, match="None may not stand"):
        dataset.write([*batch(verb, 3), {**batch(verb, 4)[0], "id": None}], mode=verb)
    assert stored(dataset) == before


# --- what differs


NAN = float("nan")
EQUAL: dict[str, tuple[Any, Any]] = {
    "double": (NAN, NAN),
    "float": (-0.0, 0.0),
    "list<double>": ([NAN, -0.0, None], [NAN, 0.0, None]),
    "struct<a: double, b: list<double>>": ({"a": 0.0, "b": [-0.0]}, {"a": -0.0, "b": [0.0]}),
    "decimal(20,4)": (decimal.Decimal("1.0"), decimal.Decimal("1.0000")),
    "json": ('{"b": 1.50, "a": 1, "a": [1e2]}', '{"a":[100],"b":1.5}'),
}
DIFFERENT: dict[str, tuple[Any, Any]] = {
    "double": (NAN, None),
    "float": (0.0, 1.401298464324817e-45),
    "list<long>": ([], None),
    "list<string>": ([None], []),
    "struct<a: list<long>>": ({"a": []}, {"a": None}),
    "string": ("", None),
    "binary": (b"", None),
    "json": ('{"a": 1}', '{"a": "1"}'),
    "list<json>": (["{}"], ["[]"]),
    "boolean": (False, None),
}


@pytest.mark.parametrize(("type_", "pair"), EQUAL.items(), ids=list(EQUAL))
def test_c04_equal_values_are_not_written(make: Make, type_: str, pair: tuple[Any, Any]) -> None:
    dataset = make({"id": "long", "v": type_}, ["id"])
    for old, new in (pair, pair[::-1]):
        dataset.write([{"id": 1, "v": old}], mode="replace")
        written = dataset.write([{"id": 1, "v": new}], mode="upsert")
        assert (written.committed, written.rows_unchanged) == (False, 1)


@pytest.mark.parametrize(("type_", "pair"), DIFFERENT.items(), ids=list(DIFFERENT))
def test_c04_other_values_are_written(make: Make, type_: str, pair: tuple[Any, Any]) -> None:
    dataset = make({"id": "long", "v": type_}, ["id"])
    for old, new in (pair, pair[::-1]):
        dataset.write([{"id": 1, "v": old}], mode="replace")
        assert dataset.write([{"id": 1, "v": new}], mode="upsert").rows_updated == 1
        dataset.verify()
        assert dataset.write([{"id": 1, "v": old}], mode="upsert").rows_updated == 1
        assert recorded(dataset) == dataset.digest()


def test_keys_that_a_document_has_besides_the_columns_make_no_difference(dataset: lakeward.Dataset) -> None:
    run(dataset, """UPDATE lakeward.dataset_rows SET data = data || '{"dropped": 1}' WHERE dataset_id = :id""")
    assert dataset.write(rows(*range(10)), mode="mirror").committed is False


# --- one transaction


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("step", ["prepare", "prepare:copy", "prepare:chunk", "audit", "decide"])
def test_a_failed_write_leaves_nothing(
    ws: lakeward.Workspace, dataset: lakeward.Dataset, opened: Opened, verb: str, step: str
) -> None:
    before, rows_before = stored(dataset), content(dataset)
    faults = raise_at(step, LakewardError("anything"))
    with pytest.raises(LakewardError, match="anything"):
        opened(faults).dataset(dataset.name).write(batch(verb, 3, 4, 5, 30), mode=verb)
    assert stored(dataset) == before
    assert content(dataset) == rows_before
    assert unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize("verb", VERBS)
def test_readers_see_the_old_rows_until_it_is_decided(dataset: lakeward.Dataset, opened: Opened, verb: str) -> None:
    seen: list[object] = []
    old = (content(dataset), dataset.digest())

    def look() -> None:
        assert any(version == 2 or until == 2 for _, version, until, *_ in stored(dataset))
        seen.append((content(dataset), dataset.digest()))

    faults = AtStep("decide", look)
    opened(faults).dataset(dataset.name).write(batch(verb, 3, 4, 30), mode=verb)
    assert seen == [old]
    assert (content(dataset), dataset.digest()) != old
    assert content(dataset, 1) == old[0]


@pytest.mark.parametrize("step", ["prepare", "prepare:chunk"])
def test_a_zombie_writes_nothing(ws: lakeward.Workspace, dataset: lakeward.Dataset, opened: Opened, step: str) -> None:
    def taken_over() -> None:
        expire(ws.database)
        ws.recover()
        dataset.write(rows(5, note="theirs"), mode="upsert")

    faults = AtStep(step, taken_over)
    with pytest.raises(LeaseLost):
        opened(faults).dataset(dataset.name).write(rows(3, 5, 30, note="mine"), mode="upsert")
    assert [row["note"] for row in content(dataset)] == ["old"] * 5 + ["theirs"] + ["old"] * 4
    assert recorded(dataset) == dataset.digest()
    assert unclean(ws, [dataset.name]) == []


def test_who_is_taken_over_in_the_middle_of_its_copy_has_written_nothing(
    ws: lakeward.Workspace, dataset: lakeward.Dataset, opened: Opened
) -> None:
    found: list[object] = []

    def take_over() -> None:
        expire(ws.database)
        found.extend(ws.recover())

    with pytest.raises(LeaseLost):
        opened(AtStep("prepare:copy", take_over)).dataset(dataset.name).write(rows(3, note="mine"), mode="upsert")
    assert len(found) == 1
    assert [row["note"] for row in content(dataset)] == ["old"] * 10
    assert {row[2] for row in stored(dataset)} == {None}
    assert unclean(ws, [dataset.name]) == []


def test_c01_two_writers_at_once_never_insert_a_key_twice(dataset: lakeward.Dataset) -> None:
    def work(thread: int) -> None:
        for turn in range(5):
            dataset.write(rows(*range(turn, 20 + turn), note=f"{thread} {turn}"), mode="upsert")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))
    assert [row["id"] for row in content(dataset)] == list(range(24))
    assert recorded(dataset) == dataset.digest()
