"""Keys of every type that may be one, and values of every type: what is the same row, and what is a change."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pytest

from conformance.test_types import EXTREMES, assert_same_rows
from lakeward.errors import DuplicateKey
from lakeward.testing.in_memory_merge import same
from lakeward.types.logical import SIMPLE_TYPES
from lakeward.types.schema import FLOAT_KINDS, NESTED_KINDS
from support.arms import ArmUnderTest, HeldDataset
from support.covering import covering
from support.keyed import assert_digest_kept, counts
from support.rows import arrow_table

UTC = dt.UTC
NAN = float("nan")

KEYS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [-(2**31), 2**31 - 1, 0, -1],
    "long": [-(2**63), 2**63 - 1, 2**53, 2**53 + 1, 0],
    "decimal(38,0)": [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0)],
    "decimal(38,38)": [Decimal("0." + "9" * 38), Decimal("-0." + "9" * 38), Decimal("0")],
    "decimal(5,2)": [Decimal("1.00"), Decimal("10.00"), Decimal("0.10"), Decimal("-0.01"), Decimal("0.00")],
    "string": [
        *["", " ", "  ", "a", "A", "a ", " a", "a\n", "a\tb", "null", "NULL", '"', "'", "\\", "\\\\", "\x01\x7f"],
        *[
            "é",
            "e\u0301",
            "É",
            "ß",
            "ss",
            "ı",
            "i",
            "İ",
            "😀",
            "\uffff",
            "\ufeffa",
            "\u200b",
            "%",
            "_",
            "1",
            "01",
            "x" * 5_000,
        ],
    ],
    "binary": [b"", b"\0", b"\0\0", b"a", b"A", b"\xff\xfe", bytes(range(256))],
    "uuid": [
        uuid.UUID(int=0).bytes,
        uuid.UUID(int=2**128 - 1).bytes,
        uuid.UUID(int=1).bytes,
        uuid.UUID(int=1 << 127).bytes,
    ],
    "date": [
        dt.date(1, 1, 1),
        dt.date(9999, 12, 31),
        dt.date(1969, 12, 31),
        dt.date(1970, 1, 1),
        dt.date(1582, 10, 10),
    ],
    "time": [dt.time(0), dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999_999)],
    "timestamp": [
        dt.datetime(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        dt.datetime(1970, 1, 1),
    ],
    "timestamptz": [
        dt.datetime(1, 1, 1, tzinfo=UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
        dt.datetime(2024, 3, 31, 1, 30, 0, 1, tzinfo=UTC),
    ],
}
"""For each type that a key may have, values that are all different, and that something or other takes for the same."""


def test_every_type_of_a_key_is_here() -> None:
    assert {type_.split("(")[0] for type_ in KEYS} == {*SIMPLE_TYPES, "decimal"} - {*FLOAT_KINDS, *NESTED_KINDS}


def keyed_rows(dataset: HeldDataset, keys: list[Any], value: int) -> Any:
    return arrow_table(dataset.schema, [{"k": key, "v": value} for key in keys])


@pytest.mark.parametrize("type_", KEYS)
def test_keys_of_every_type(arm: ArmUnderTest, type_: str) -> None:
    dataset = arm.create({"v": "long", "k": type_}, ["k"])
    keys = KEYS[type_]
    first = keyed_rows(dataset, keys, 1)
    dataset.write(first, "upsert")
    assert counts(dataset.write(keyed_rows(dataset, keys[::-1], 1), "upsert")) == {
        "version": 1,
        "rows_in": len(keys),
        "rows_unchanged": len(keys),
        "row_count": len(keys),
    }
    assert dataset.write(keyed_rows(dataset, keys, 2), "append_new").rows_skipped == len(keys)
    result = dataset.write(keyed_rows(dataset, keys[::-1], 2), "upsert")
    assert (result.rows_updated, result.row_count) == (len(keys), len(keys))
    assert_same_rows(dataset.to_arrow(identity=True), keyed_rows(dataset, keys, 2))
    dataset.write(first.select(["k"]).slice(1, 1), "delete")
    assert_same_rows(dataset.to_arrow(identity=True), keyed_rows(dataset, [keys[0], *keys[2:]], 2))
    result = dataset.write(keyed_rows(dataset, keys[:2], 2), "mirror")
    assert (result.rows_added, result.rows_unchanged, result.rows_deleted) == (1, 1, len(keys) - 2)
    assert_same_rows(dataset.to_arrow(identity=True), keyed_rows(dataset, keys[:2], 2))
    assert_digest_kept(dataset, known=True)


@covering("type_", "arm")
@pytest.mark.parametrize("type_", KEYS)
def test_one_of_these_twice_is_found_among_the_others(arm: ArmUnderTest, type_: str) -> None:
    dataset = arm.create({"k": type_, "v": "long"}, ["k"])
    for number, key in enumerate(KEYS[type_][:6]):
        with pytest.raises(DuplicateKey) as caught:
            dataset.write(keyed_rows(dataset, [*KEYS[type_], key], number), "upsert")
        assert caught.value.fields["count"] == 1
    dataset.write(keyed_rows(dataset, [*KEYS[type_], KEYS[type_][-1]], 0))
    with pytest.raises(DuplicateKey) as caught:
        dataset.write(keyed_rows(dataset, KEYS[type_], 1), "upsert")
    assert (caught.value.fields["where"], caught.value.fields["count"]) == ("dataset", 1)


def test_other_spellings_of_a_key_are_the_same_key(arm: ArmUnderTest) -> None:
    east = dt.timezone(dt.timedelta(hours=9))
    for type_, one, other in (
        ("decimal(5,2)", Decimal("1.0"), Decimal("1.00")),
        ("decimal(5,2)", Decimal("-0.00"), Decimal("0")),
        ("timestamptz", dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 1, 9, tzinfo=east)),
        ("uuid", str(uuid.UUID(int=10)).upper(), uuid.UUID(int=10)),
    ):
        dataset = arm.create({"k": type_, "v": "long"}, ["k"])
        dataset.write([{"k": one, "v": 1}], "upsert")
        result = dataset.write([{"k": other, "v": 2}], "upsert")
        assert (result.rows_updated, result.row_count) == (1, 1), type_
        with pytest.raises(DuplicateKey):
            dataset.write([{"k": one, "v": 3}, {"k": other, "v": 4}], "upsert")


def test_a_key_of_several_columns_is_compared_column_by_column(arm: ArmUnderTest) -> None:
    """Not by a text of all of them, in which two keys could meet; and in the order of the key, not of the columns."""
    dataset = arm.create({"v": "long", "b": "string", "a": "string", "n": "int"}, ["a", "n", "b"])
    keys = [
        ("a", 1, "bc"),
        ("ab", 1, "c"),
        ("a", 11, "bc"),
        ("a1", 1, "bc"),
        ("", 1, "abc"),
        ("abc", 1, ""),
        ("a,", 1, "b"),
    ]
    rows = [{"a": a, "n": n, "b": b, "v": 1} for a, n, b in keys]
    dataset.write(rows, "upsert")
    result = dataset.write([{**row, "v": 2} for row in rows[::-1]], "upsert")
    assert (result.rows_updated, result.row_count) == (len(keys), len(keys))
    swapped = [{"a": row["b"], "n": row["n"], "b": row["a"], "v": 2} for row in rows]
    assert dataset.write(swapped, "append_new").rows_added == len(
        {(row["a"], row["n"], row["b"]) for row in swapped} - set(keys)
    )
    result = dataset.write([{"b": b, "a": a, "n": n} for a, n, b in keys], "delete")
    assert result.rows_deleted == len(keys)
    assert_digest_kept(dataset, known=True)


def test_a_key_of_many_columns_of_all_types(arm: ArmUnderTest) -> None:
    columns = {f"k{number}": type_ for number, type_ in enumerate(KEYS)}
    dataset = arm.create({**columns, "v": "long"}, list(columns))
    rows = [
        {**{name: KEYS[type_][turn % len(KEYS[type_])] for name, type_ in columns.items()}, "v": turn}
        for turn in range(12)
    ]
    table = arrow_table(dataset.schema, rows)
    dataset.write(table, "upsert")
    changed = arrow_table(dataset.schema, [{**row, "v": -1} for row in rows[::2]])
    result = dataset.write(changed, "upsert")
    assert (result.rows_updated, result.rows_added, result.row_count) == (6, 0, 12)
    assert dataset.write(table.select(list(columns)), "delete").rows_deleted == 12


@pytest.mark.parametrize("type_", EXTREMES)
def test_a_value_that_is_the_same_is_no_change(arm: ArmUnderTest, type_: str) -> None:
    dataset = arm.create({"id": "long", "value": type_, "other": "int"}, ["id"])
    values = [*EXTREMES[type_], None]

    def given(turn: int) -> Any:
        rotated = values[turn:] + values[:turn]
        return arrow_table(
            dataset.schema, [{"id": number, "value": value, "other": None} for number, value in enumerate(rotated)]
        )

    dataset.write(given(0), "upsert")
    assert_same_rows(dataset.to_arrow(identity=True), given(0))
    again = dataset.write(given(0), "upsert")
    assert (again.committed, again.rows_unchanged) == (False, len(values))
    result = dataset.write(given(1), "upsert")
    before, after = (given(turn)["value"].to_pylist() for turn in (0, 1))
    assert result.rows_updated == sum(not same(left, right) for left, right in zip(before, after, strict=True))
    assert_same_rows(dataset.to_arrow(identity=True), given(1))
    assert_same_rows(dataset.to_arrow(identity=True, version=1), given(0))
    assert_digest_kept(dataset, known=True)


DIFFERENT: list[tuple[str, Any, Any]] = [
    ("double", None, NAN),
    ("double", NAN, 0.0),
    ("double", 0.1 + 0.2, 0.3),
    ("double", 5e-324, 0.0),
    ("float", 1.0, 1.0000001192092896),
    ("double", float("inf"), float("-inf")),
    ("string", "", None),
    ("string", "a", "A"),
    ("string", "a", "a "),
    ("string", "é", "e\u0301"),
    ("binary", b"", None),
    ("binary", b"", b"\0"),
    ("decimal(5,2)", Decimal("0.00"), None),
    ("decimal(38,38)", Decimal("0." + "0" * 37 + "1"), Decimal(0)),
    ("timestamp", dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)),
    ("list<int>", None, []),
    ("list<int>", [], [None]),
    ("list<int>", [None], None),
    ("list<int>", [1, 2], [2, 1]),
    ("list<int>", [1], [1, None]),
    ("list<double>", [NAN], [None]),
    ("list<list<string>>", [[]], [None]),
    ("list<list<string>>", [["a"], []], [["a"], [""]]),
    ("struct<x: int, y: string>", None, {"x": None, "y": None}),
    ("struct<x: int, y: string>", {"x": None, "y": ""}, {"x": None, "y": None}),
    ("struct<x: string, y: string>", {"x": "a", "y": None}, {"x": None, "y": "a"}),
    ("struct<x: struct<z: int>>", {"x": None}, {"x": {"z": None}}),
    ("list<struct<x: int>>", [{"x": None}], [None]),
    ("json", "[1,2]", "[2,1]"),
    ("json", '"1"', "1"),
    ("json", '{"a":null}', "{}"),
    ("json", None, "[]"),
]
SAME: list[tuple[str, Any, Any]] = [
    ("double", NAN, -NAN),
    ("double", 0.0, -0.0),
    ("float", -0.0, 0.0),
    ("list<double>", [NAN, -0.0, None], [NAN, 0.0, None]),
    ("struct<x: double, y: list<double>>", {"x": NAN, "y": [NAN]}, {"x": NAN, "y": [NAN]}),
    ("decimal(5,2)", Decimal("1.5"), Decimal("1.50")),
    (
        "timestamptz",
        dt.datetime(2024, 1, 1, tzinfo=UTC),
        dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    ),
    ("json", '{"b": 1, "a": [1.0]}', '{"a":[1.00],"b":1e0}'),
]


Pair = tuple[str, Any, Any]


def pairs_dataset(arm: ArmUnderTest, cases: list[Pair]) -> HeldDataset:
    """Make a dataset with a column of each type that cases have."""
    return arm.create({"k": "int", **{type_: type_ for type_, _, _ in cases}}, ["k"])


def pair_rows(cases: list[Pair], swapped: bool) -> list[dict[str, Any]]:
    """Return two rows for each case, which have a value in the column of its type alone."""
    nothing = {type_: None for type_, _, _ in cases}
    values = [(type_, value) for type_, left, right in cases for value in ((right, left) if swapped else (left, right))]
    return [{"k": number, **nothing, type_: value} for number, (type_, value) in enumerate(values)]


def test_u05_a_difference_is_a_change(arm: ArmUnderTest) -> None:
    dataset = pairs_dataset(arm, DIFFERENT)
    dataset.write(pair_rows(DIFFERENT, swapped=False), "upsert")
    before = [[row[DIFFERENT[row["k"] // 2][0]]] for row in dataset.rows()]
    result = dataset.write(pair_rows(DIFFERENT, swapped=True), "upsert")
    assert (result.rows_updated, result.rows_unchanged) == (2 * len(DIFFERENT), 0)
    after = [[row[DIFFERENT[row["k"] // 2][0]]] for row in dataset.rows()]
    for number, case in enumerate(DIFFERENT):
        one, other = 2 * number, 2 * number + 1
        assert repr(after[one : other + 1]) == repr([before[other], before[one]]), case
    assert_digest_kept(dataset, known=True)


def test_u05_another_spelling_is_no_change(arm: ArmUnderTest) -> None:
    dataset = pairs_dataset(arm, SAME)
    dataset.write(pair_rows(SAME, swapped=False), "upsert")
    before = dataset.rows()
    result = dataset.write(pair_rows(SAME, swapped=True), "upsert")
    assert (result.committed, result.rows_unchanged) == (False, 2 * len(SAME))
    assert repr(dataset.rows()) == repr(before), "what is stored stays bit for bit"


def test_u05_nulls_nan_structs_and_lists_at_once(arm: ArmUnderTest) -> None:
    dataset = arm.create({"k": "int", "v": "double", "s": "struct<x: int>", "l": "list<int>"}, ["k"])
    dataset.write([{"k": 1, "v": None, "s": {"x": None}, "l": None}, {"k": 2, "v": NAN, "s": None, "l": []}])
    changed = [{"k": 1, "v": 7.0, "s": {"x": 5}, "l": [None]}, {"k": 2, "v": NAN, "s": None, "l": []}]
    result = dataset.write(changed, "upsert")
    assert (result.rows_updated, result.rows_unchanged, result.rows_added) == (1, 1, 0)
    assert repr(dataset.rows()) == repr(changed)
    result = dataset.write([{**changed[1], "l": None}], "upsert")
    assert result.rows_updated == 1, "a null list differs from an empty one"


def test_u06_columns_in_another_order(arm: ArmUnderTest) -> None:
    """Two columns of one type, so that values that land by position would be told by nothing."""
    dataset = arm.create({"id": "int", "n": "string", "m": "string"}, ["id"])
    dataset.write([{"id": 1, "n": "n1", "m": "m1"}, {"id": 2, "n": "n2", "m": "m2"}])
    table = arrow_table(dataset.schema, [{"id": 2, "n": "n2", "m": "m2"}, {"id": 1, "n": "N1", "m": "m1"}])
    result = dataset.write(table.select(["m", "id", "n"]), "upsert")
    assert (result.rows_updated, result.rows_unchanged) == (1, 1)
    dataset.write(
        [{"m": "m3", "__op": "insert", "n": "n3", "id": 3}, {"__op": "delete", "id": 2, "m": None, "n": None}],
        "changes",
    )
    assert dataset.rows() == [{"id": 1, "n": "N1", "m": "m1"}, {"id": 3, "n": "n3", "m": "m3"}]


@pytest.mark.parametrize("last", ["\ud7ff", "\U0010ffff", "\ud7ff\U0010ffff", "\ue000"])
def test_text_that_has_no_next_character_where_bounds_are_cut(arm: ArmUnderTest, last: str) -> None:
    dataset = arm.create({"k": "string", "v": "string"}, ["k"])
    text = "x" * (16 - len(last)) + last + "more"
    dataset.write([{"k": text, "v": text}, {"k": last * 20, "v": last * 20}], "upsert")
    assert dataset.write([{"k": text, "v": "new"}, {"k": last * 20, "v": last * 20}], "upsert").rows_updated == 1
    assert dataset.write([{"k": last * 20}], "delete").rows_deleted == 1
    assert dataset.rows() == [{"k": text, "v": "new"}]


def test_names_that_sql_or_formats_use_themselves(arm: ArmUnderTest) -> None:
    names = [
        "position",
        "removes",
        "batch",
        "op",
        "c1",
        "c2",
        "file_path",
        "pos",
        "_pos",
        "key",
        "until",
        "data",
        "row_id",
    ]
    dataset = arm.create({**dict.fromkeys(names, "string"), 'q"x.y': "int"}, ["position", 'q"x.y', "key"])
    rows = [{**{name: f"{name}{number}" for name in names}, 'q"x.y': number} for number in range(3)]
    dataset.write(rows, "upsert")
    changed = [{**row, "pos": "new"} for row in rows[1:]]
    assert dataset.write(changed, "mirror").rows_updated == 2
    assert dataset.rows() == changed
    changes = [{**changed[0], "__op": "delete"}, {**changed[1], "op": "x", "__op": "update"}]
    result = dataset.write(changes, "changes")
    assert (result.rows_deleted, result.rows_updated) == (1, 1)
    assert dataset.rows() == [{**changed[1], "op": "x"}]
