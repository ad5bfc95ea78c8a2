"""Keyed writes on the Iceberg arm: keys of every type and number are found, and it is told which rows differ."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.table import Table

import lakeward
from lakeward.errors import DuplicateKey
from lakeward.storage.arms.iceberg import merge
from lakeward.storage.arms.iceberg.scans import live_rows
from support.keyed import assert_digest_kept
from support.merge_subject import Subject


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    """A workspace for all tests of this module."""
    with lakeward.open(tmp_path_factory.mktemp("merge") / "home") as opened:
        yield opened


@pytest.fixture
def orders(shared: lakeward.Workspace) -> Subject:
    """Three data files of ten rows: 0-9, 100-109, 200-209."""
    return Subject(shared).fill(range(10), range(100, 110), range(200, 210))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of data files that each keyed write has read keys of."""
    seen: list[int] = []

    def counted(table: Table, tasks: Any, *arguments: Any, **named: Any) -> Any:
        seen.append(len(tasks))
        return live_rows(table, tasks, *arguments, **named)

    monkeypatch.setattr(merge, "live_rows", counted)
    return seen


# Keys ---------------------------------------------------------------------------------------------------------------

_DAY = dt.date(1969, 12, 1)
KEYS: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n - 50,
    "long": lambda n: (n - 50) * 2**40,
    "string": lambda n: "a long beginning that is all the same " + "äö日\U0001f600"[n % 4] * (n % 3) + f"{n:05d}",
    "decimal(20, 3)": lambda n: Decimal(n - 50) / 1000,
    "uuid": lambda n: uuid.UUID(int=(n * 0x9E3779B97F4A7C15F39CC0605CEDC834) % 2**128),
    "date": lambda n: _DAY + dt.timedelta(days=n),
    "time": lambda n: dt.time(n // 60, n % 60, 1, n),
    "timestamp": lambda n: dt.datetime(1969, 12, 31, 23) + dt.timedelta(minutes=n, microseconds=n),
    "timestamptz": lambda n: dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC) + dt.timedelta(minutes=n, microseconds=n),
    "binary": lambda n: b"\xff" * 20 + bytes([n, 0, 255 - n]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_are_found_and_pruned(shared: lakeward.Workspace, kind: str) -> None:
    key = KEYS[kind]
    orders = Subject(shared, {"id": kind, "n": "long"})
    ordered = sorted(key(number) for number in range(120))
    for part in range(0, 120, 40):
        orders.held.write([{"id": value, "n": 0} for value in ordered[part : part + 40]])
    orders.workspace.storage.verify(orders.held.record)
    changed = [ordered[0], ordered[39], ordered[40], ordered[119], key(200)]
    result = orders.held.write([{"id": value, "n": 1} for value in reversed(changed)], "upsert")
    assert (result.rows_updated, result.rows_added) == (4, 1)
    assert {row["id"] for row in orders.check() if row["n"]} == set(changed)
    assert orders.held.write([{"id": value} for value in changed], "delete").rows_deleted == 5
    orders.check()


@pytest.mark.parametrize("kind", sorted(set(KEYS) - {"string", "binary", "uuid"}))
def test_bounds_of_every_type_prune(shared: lakeward.Workspace, kind: str, reads: list[int]) -> None:
    key = KEYS[kind]
    orders = Subject(shared, {"id": kind, "n": "long"})
    for part in range(0, 120, 40):
        orders.held.write([{"id": key(number), "n": 0} for number in range(part, part + 40)])
    orders.held.write([{"id": key(50), "n": 1}, {"id": key(70), "n": 1}], "upsert")
    assert reads == [1]


def test_a_boolean_key_and_a_key_of_two_columns(shared: lakeward.Workspace, reads: list[int]) -> None:
    orders = Subject(shared, {"n": "long", "flag": "boolean", "id": "string"}, ("flag", "id"))
    for flag in (False, True):
        orders.held.write([{"id": f"k{number}", "flag": flag, "n": 0} for number in range(10)])
    orders.workspace.storage.verify(orders.held.record)
    result = orders.held.write(pa.table({"id": ["k3", "k99"], "flag": [True, True], "n": [1, 1]}), "upsert")
    assert (result.rows_updated, result.rows_added, reads) == (1, 1, [1])
    assert [(row["flag"], row["id"]) for row in orders.check() if row["n"]] == [(True, "k3"), (True, "k99")]


@pytest.mark.parametrize("size", [500, 1_000, 1_500, 5_000, 20_000])
def test_u01_composite_keys(shared: lakeward.Workspace, size: int) -> None:
    def rows(value: int) -> pa.Table:
        numbers = pa.array(range(size), pa.int32())
        return pa.table({"b": pc.cast(numbers, pa.string()), "a": pc.cast(numbers, pa.int32()), "v": [value] * size})

    orders = Subject(shared, {"a": "int", "b": "string", "v": "long"}, ("a", "b"))
    orders.held.write(rows(0).select(["a", "b", "v"]))
    orders.workspace.storage.verify(orders.held.record)
    snapshots = len(orders.table.metadata.snapshots)
    result = orders.held.write(rows(1), "upsert")
    assert (result.rows_updated, result.row_count) == (size, size)
    assert len(orders.table.metadata.snapshots) == snapshots + 1
    assert orders.summary()["total-data-files"] == "1", "all rows of the first file went"
    orders.check()
    assert not orders.held.write(rows(1), "upsert").committed


def test_two_million_keys_in_one_batch(shared: lakeward.Workspace) -> None:
    count = 2_000_000
    orders = Subject(shared, {"id": "long", "v": "int"})
    numbers = pa.array(range(count), pa.int64())
    orders.held.write(
        pa.table({"id": pc.multiply(numbers.slice(0, 1_000_000), 2), "v": pa.nulls(1_000_000, pa.int32())})
    )
    result = orders.held.write(
        pa.table({"id": numbers, "v": pc.cast(pc.bit_wise_and(numbers, 7), pa.int32())}), "upsert"
    )
    assert (result.rows_updated, result.rows_added, result.row_count) == (1_000_000, 1_000_000, count)
    table = orders.table.scan(selected_fields=("id", "v")).to_arrow()
    assert pc.count_distinct(table["id"]).as_py() == table.num_rows == count
    assert pc.all(pc.equal(pc.bit_wise_and(table["id"], 7), table["v"])).as_py()


def test_a_key_that_the_dataset_has_twice(orders: Subject) -> None:
    orders.held.write([{"id": 3, "note": "again"}])
    with pytest.raises(DuplicateKey) as caught:
        orders.upsert(3, 4)
    assert caught.value.fields["where"] == "dataset"
    assert orders.table.metadata.refs.keys() == {"main"}
    assert orders.upsert(4).rows_updated == 1, "others can be written"


# Values -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
def test_u05_what_differs(shared: lakeward.Workspace, known: bool) -> None:
    """With the parent's digest known all columns are read at once; else a few first, then the others."""
    nan = float("nan")
    columns = {
        "k": "int",
        "v": "double",
        "w": "double",
        "s": "struct<x: int, d: double>",
        "l": "list<double>",
        "t": "string",
    }
    orders = Subject(shared, columns, ("k",))
    empty: dict[str, Any] = {"v": None, "w": None, "s": None, "l": None, "t": None}
    old = [
        {**empty, "k": 1, "s": {"x": None, "d": None}},
        {**empty, "k": 2, "v": nan, "l": []},
        {**empty, "k": 3, "s": {"x": None, "d": nan}, "l": [nan, None, 0.0]},
        {**empty, "k": 4, "l": []},
        {**empty, "k": 5, "v": 0.0, "t": ""},
        {**empty, "k": 6, "s": {"x": 1, "d": -0.0}},
        {**empty, "k": 7},
    ]
    orders.held.write(old)
    if known:
        orders.workspace.storage.verify(orders.held.record)
    new = [
        {**old[0], "s": None},
        {**old[1]},
        {**old[2], "l": [nan, None, -0.0]},
        {**old[3], "l": None},
        {**old[4], "v": -0.0, "t": ""},
        {**old[5], "s": {"x": 1, "d": 0.0}},
        {**old[6], "l": [None]},
    ]
    result = orders.held.write(new, "upsert")
    assert (result.rows_updated, result.rows_unchanged) == (3, 4)
    rows = {row["k"]: row for row in orders.held.rows(identity=True)}
    assert {number for number, row in rows.items() if row["__version"] == 2} == {1, 4, 7}
    assert (rows[1]["s"], rows[4]["l"], rows[7]["l"]) == (None, None, [None])
    if known:
        assert_digest_kept(orders.held, known=True)


def test_rows_that_differ_only_where_is_read_last(shared: lakeward.Workspace) -> None:
    orders = Subject(shared, {"id": "long", "small": "boolean", "wide": "string", "more": "list<string>"})
    rows: list[dict[str, Any]] = [
        {"id": n, "small": True, "wide": f"{n * 7919 % 1000:050d}", "more": [str(n)]} for n in range(1000)
    ]
    orders.held.write(rows)
    rows[10]["wide"] += "!"
    rows[20]["more"] = []
    rows[30]["small"] = None
    result = orders.held.write(rows, "upsert")
    assert (result.rows_updated, result.rows_unchanged) == (3, 997)
    assert orders.held.rows() == rows
