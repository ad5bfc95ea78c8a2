"""Row filters: one predicate over the row's own columns passes and keeps its meaning, everything else is refused."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from lakeward.errors import SqlError
from lakeward.storage.filters import Conjunct, parse_filter
from lakeward.types.schema import Schema
from support.rows import ODD_NAMES

SCHEMA = Schema.declare(
    {
        "id": "long",
        "small": "int",
        "Note": "string",
        "amount": "decimal(9,2)",
        "tags": "list<string>",
        "place": 'struct<city: string, "the zip": int>',
        "day": "date",
        "raw": "binary",
        'x"; drop table t; --': "long",
    }
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "id =",
        "id = 1; SELECT 2",
        "id = 1) OR (1 = 1",
        "1) or (1=1",
        "id = 1) UNION SELECT (1",
        "id = 1 GROUP BY id",
        "id = 1 ORDER BY id",
        "id = 1 LIMIT 1",
        "'; select pg_sleep(5); --",
        "id = 1 --) \n) UNION SELECT (1",
        "id IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "(SELECT true)",
        "id = (FROM range(3))",
        "id = ?",
        "id = $1",
        "id = :name",
        "*",
        "COLUMNS('.*') IS NOT NULL",
        "COLUMNS(*) IS NOT NULL",
        "count(*) > 1",
        "sum(id) > 1",
        "max(id) = id",
        "row_number() OVER () = 1",
        "lag(id) OVER (ORDER BY id) = 1",
        "random() > 0.5",
        "day < now()",
        "day < current_date",
        "day < today()",
        "localtimestamp IS NULL",
        "rand() > 0.5",
        "uuid() IS NULL",
        "gen_random_uuid() IS NULL",
        "uuidv4() IS NULL",
        "uuidv7() IS NULL",
        "getenv('HOME') = 'x'",
        "current_setting('threads') = 1",
        "getvariable('x') = 1",
        "nextval('s') > 1",
        "currval('s') > 1",
        "setseed(0.5) IS NULL",
        "sleep_ms(1000) IS NULL",
        "pg_sleep(5) IS NULL",
        "write_log('x') IS NULL",
        "current_query() = 'x'",
        "current_user = 'x'",
        "main.read_text('/etc/passwd') IS NULL",
        "read_csv('x') IS NULL",
        "error('x')",
        "txid_current() > 1",
        "nope = 1",
        "other.id = 1",
        "id = 1 AS x",
        "DELETE FROM x",
        "id := 1",
    ],
)
def test_s03_what_is_not_a_predicate_over_the_row_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match=r"^dataset a\.b\.c: filter "):
        parse_filter(text, SCHEMA, "a.b.c")


def test_an_unknown_column_is_told_with_the_nearest_one() -> None:
    with pytest.raises(SqlError, match=r"unknown column 'amuont'") as caught:
        parse_filter("amuont > 1", SCHEMA, "a.b.c")
    assert caught.value.next_step == "did you mean amount?"


@pytest.mark.parametrize("name", ODD_NAMES)
def test_s03_odd_names_are_plain_names(name: str) -> None:
    schema = Schema.declare({name: "long", "other": "long"})
    quoted = '"' + name.replace('"', '""') + '"'
    found = parse_filter(f"{quoted} = 1 AND other > 0", schema, "d")
    assert found.columns == (name, "other")
    assert found.conjuncts == (Conjunct(name, "=", 1), Conjunct("other", ">", 0))


ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, None], pa.int64()),
        "small": pa.array([-1, 0, None, 7], pa.int32()),
        "Note": ["it's", "a\\b%", None, 'say "x"'],
        "amount": pa.array([Decimal("1.50"), Decimal("-2"), None, Decimal("0.01")], pa.decimal128(9, 2)),
        "tags": [["a", "b"], [], None, ["c", None]],
        "place": pa.array(
            [{"city": "x", "the zip": 1}, None, {"city": None, "the zip": 2}, {"city": "y", "the zip": 3}],
            pa.struct([("city", pa.string()), ("the zip", pa.int32())]),
        ),
        "day": pa.array([0, 10_000, None, -5], pa.date32()),
        "raw": pa.array([b"", b"\x00\xff", None, b"a'b"], pa.binary()),
        'x"; drop table t; --': pa.array([1, 2, 3, 4], pa.int64()),
    }
)


@pytest.mark.parametrize(
    "text",
    [
        "id = 1",
        "ID = 1 and nOtE = 'it''s'",
        "Note = 'a\\b%'",
        "Note LIKE 'a\\%' ESCAPE '\\'",
        "Note LIKE '%\"x\"%'",
        "Note ILIKE 'IT%'",
        "Note ~ '^it'",
        "regexp_matches(Note, '^i')",
        "Note || '!' = 'it''s!'",
        "Note = E'it\\'s'",
        "Note = $$it's$$",
        "id / 2 = 1.5",
        "id // 2 = 1",
        "id % 2 = 1",
        "id ** 2 = 9",
        "-id < -1",
        "id <> 2",
        "id != 2",
        "id IS DISTINCT FROM 2",
        "NOT id = 2",
        "id IN (1, 3)",
        "id NOT IN (1, NULL)",
        "id BETWEEN 2 AND 3",
        "(id = 1 OR id = 2) AND (small = 0 OR small < 0)",
        "id = 1 OR id = 2 AND small = 5",
        "amount > 1.25",
        "amount = 1.5",
        "tags[1] = 'a'",
        "list_contains(tags, 'c')",
        "len(tags) = 2",
        "'a' = ANY(tags)",
        "place.city = 'x'",
        'place."the zip" > 1',
        "place['city'] IS NULL",
        "day > DATE '1990-01-01'",
        "day + INTERVAL 1 DAY > '1990-01-01'",
        "date_part('year', day) = 1997",
        "extract(year FROM day) = 1969",
        "raw = '\\x00\\xFF'::BLOB",
        "CASE WHEN id = 1 THEN small < 0 ELSE small > 0 END",
        "coalesce(small, 1) = 1",
        "TRY_CAST(Note AS INTEGER) IS NULL",
        "id::VARCHAR = '3'",
        "id = 1 -- a comment",
        "id = 1 /* another */",
        '"x""; drop table t; --" = 2',
        "true",
        "id IS NULL",
        "id & 1 = 1",
        "xor(id, 1) = 0",
        "starts_with(Note, 'it')",
        "Note COLLATE NOCASE = 'IT''S'",
        "day < DATE '2026-01-01'",
    ],
)
def test_what_passes_means_what_duckdb_takes_the_text_for(text: str) -> None:
    found = parse_filter(text, SCHEMA, "d")
    with duckdb.connect() as connection:
        connection.register("source", ROWS)

        def ids(where: str) -> list[tuple[object, ...]]:
            query = 'SELECT "x""; drop table t; --" FROM source WHERE (' + where + "\n)"
            return connection.execute(query).fetchall()

        assert ids(found.sql) == ids(text)
        pruned = [f'"{each.column}" {each.operator} {each.value}' for each in found.conjuncts if '"' not in each.column]
        assert ids(" AND ".join([f"({found.sql})", *pruned])) == ids(text), "pruning takes no row that is wanted"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 5", [("id", "=", 5)]),
        ("5 < id", [("id", ">", 5)]),
        ("5 >= id AND small = -3", [("id", "<=", 5), ("small", "=", -3)]),
        ("(id = 5) AND (small = 1)", [("id", "=", 5), ("small", "=", 1)]),
        ("__version > 3", [("__version", ">", 3)]),
        ("id = 5 OR small = 1", []),
        ("NOT id = 5", []),
        ("id = 5.5", []),
        ("id = '5'", []),
        ("amount = 5", []),
        ("id + 1 = 5", []),
        ("id = small", []),
        ("id = 9223372036854775808", []),
        ("id >= -9223372036854775808", [("id", ">=", -(2**63))]),
        ("place.city = 5", []),
        ("id IS NULL", []),
    ],
)
def test_conjuncts_are_comparisons_of_a_column_with_an_integer(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert [(each.column, each.operator, each.value) for each in parse_filter(text, SCHEMA, "d").conjuncts] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 5 AND \"Note\" = 'x'", {"id", "Note"}),
        ("(ID IN (5, 6)) AND small > 3", {"id"}),
        ("__row_id = 7", {"__row_id"}),
        ("5 = id", {"id"}),
        ("id = small", set()),
        ("id IN (5, small)", set()),
        ("id = 5 OR small = 1", set()),
        ("NOT id = 5", set()),
        ("id + 1 = 5", set()),
        ("place.city = 'Bonn'", set()),
    ],
)
def test_pinned_are_columns_that_have_one_of_some_values(text: str, expected: set[str]) -> None:
    assert parse_filter(text, SCHEMA, "d").pinned == expected
