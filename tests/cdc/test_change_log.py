"""What the log of a real server tells of changes: each in the order of commits, and every value as a sync reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from cdc.reading import Reader
from lakeward.errors import SchemaError, ValueRefused
from lakeward.sources.change_logs import postgres_follower
from lakeward.sources.change_logs.postgres import PostgresChangeLog
from lakeward.sources.connector import SourceTable
from sync.test_postgres_types import MADE, VALUES

Discovered = Callable[[str], SourceTable]
Row = dict[str, Any]


def told(rows: list[Row], *columns: str) -> list[tuple[object, ...]]:
    return [(row["__op"], *(row[column] for column in columns)) for row in rows]


def test_d01_a_stream_of_key_changes_leaves_what_the_source_has(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    reader = Reader(log, [discovered(name)])
    logged.execute(f"INSERT INTO {name} VALUES (1, 'a')")
    logged.execute(f"UPDATE {name} SET id = 1001 WHERE id = 1")
    with logged.transaction():
        logged.execute(f"INSERT INTO {name} VALUES (2001, 'b')")
        logged.execute(f"UPDATE {name} SET id = 2002, v = 'c' WHERE id = 2001")
    logged.execute(f"DELETE FROM {name} WHERE id = 2002")
    with logged.transaction():
        logged.execute(f"INSERT INTO {name} VALUES (3, NULL)")
        logged.execute(f"UPDATE {name} SET v = 'd' WHERE id = 3")
        logged.execute(f"DELETE FROM {name} WHERE id = 3")
    rows = reader.read_to(logged, acknowledge=False)
    assert told(rows, "id", "v") == [
        ("insert", 1, "a"),
        ("delete", 1, None),
        ("insert", 1001, "a"),
        ("insert", 2001, "b"),
        ("delete", 2001, None),
        ("insert", 2002, "c"),
        ("delete", 2002, None),
        ("insert", 3, None),
        ("update", 3, "d"),
        ("delete", 3, None),
    ]
    assert len({(row["__commit"], row["__ordinal"]) for row in rows}) == len(rows)
    assert [row["__committed_at"] for row in rows] == sorted(row["__committed_at"] for row in rows)
    # What was not acknowledged comes again, as it was.
    assert reader.read_to(logged) == rows
    assert reader.read_to(logged) == []


def test_d01_equal_rows_of_a_table_without_a_key_are_told_one_by_one(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (a int, b text)")
    with pytest.raises(SchemaError, match=rf"{name} does not log which row[\s\S]*REPLICA IDENTITY FULL"):
        Reader(log, [discovered(name)])
    assert log.state() is None
    logged.execute(f"UPDATE {name} SET a = 1")
    logged.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    reader = Reader(log, [discovered(name)])
    logged.execute(f"INSERT INTO {name} VALUES (1, 'x'), (1, 'x'), (2, NULL)")
    logged.execute(f"UPDATE {name} SET b = 'y' WHERE a = 2")
    logged.execute(f"DELETE FROM {name} WHERE a = 1")
    assert told(reader.read_to(logged), "a", "b") == [
        *[("insert", 1, "x")] * 2,
        ("insert", 2, None),
        ("delete", 2, None),
        ("insert", 2, "y"),
        *[("delete", 1, "x")] * 2,
    ]


@pytest.fixture(scope="module")
def made_types(logged: psycopg.Connection) -> None:
    for statement in MADE:
        logged.execute(statement)


@pytest.mark.parametrize("as_text", [False, True])
def test_every_type_is_as_in_a_copy(
    log: PostgresChangeLog,
    logged: psycopg.Connection,
    name: str,
    discovered: Discovered,
    made_types: None,
    as_text: bool,
) -> None:
    columns = ", ".join(f"c{number} {type_}" for number, type_ in enumerate([*VALUES, *MORE]))
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, {columns})")
    marks = ", ".join(f"%s::text::{type_}" for type_ in [*VALUES, *MORE])
    values = [*(value for value, _ in VALUES.values()), *MORE.values()]
    insert = f"INSERT INTO {name} VALUES (%s, {marks})"
    logged.execute(insert, [1, *values])
    table = discovered(name)
    text = [column.name for column in table.columns[1:]] if as_text else []
    reader = Reader(log, [table], text)
    logged.execute(insert, [1 + 1, *values])
    logged.execute(f"INSERT INTO {name} (id) VALUES (3)")
    filled, empty = reader.read_to(logged)
    [copied] = reader.copies[table.full_name].to_pylist()
    names = [column.name for column in table.columns[1:]]
    assert {each: filled[each] for each in names} == {each: copied[each] for each in names}
    assert {empty[each] for each in names} == {None}
    [batch] = [changes.rows[table.full_name] for changes in reader.batches if changes.rows]
    assert [batch.schema.field(each).type for each in names] == [
        reader.copies[table.full_name].schema.field(each).type for each in names
    ]


MORE = {
    "inet": "2001:db8::1",
    "_int8": "{-1,NULL}",
    "_bool": "{t,f,NULL}",
    "varchar[]": '{"a,b","c\\"d","NULL",NULL,"{","","e\\\\f\ng"}',
    "date[]": "{2024-02-29}",
    "inet[]": "{10.0.0.1}",
    "_timestamptz": '{"2024-02-29 12:00:00+02"}',
    "real": "-0",
    "bytea": "",
}
"""Values beside those of a sync's test; each in a column of its own."""


@pytest.mark.parametrize(
    ("type_", "value"),
    [("timestamptz", "infinity"), ("date", "0001-12-31 BC"), ("time", "24:00"), ("numeric(9,2)", "NaN")],
)
def test_t03_what_has_no_form_is_refused_by_name_or_read_as_text(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered, type_: str, value: str
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v {type_})")
    reader = Reader(log, [discovered(name)])
    logged.execute(
        f"INSERT INTO {name} SELECT i, CASE i WHEN 7 THEN %s::{type_} END FROM generate_series(1, 9) i", [value]
    )
    with pytest.raises(ValueRefused) as caught:
        reader.read_to(logged)
    assert caught.value.fields["column"] == "v" and caught.value.fields["key"] == {"id": "7"}
    again = Reader(log, [discovered(name)], text=["v"])
    logged.execute(f"UPDATE {name} SET id = 70 WHERE id = 7")
    rows = again.read_to(logged)
    printed = logged.execute(f"SELECT v::text FROM {name} WHERE id = 70").fetchone()
    assert printed == (*[row["v"] for row in rows if row["id"] == 70],)


LONG = "repeat(md5(%s), 400)"


def test_large_values_that_stay_are_named_and_never_lost(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, a int, b text, c text)")
    logged.execute(f"ALTER TABLE {name} ALTER b SET STORAGE EXTERNAL, ALTER c SET STORAGE EXTERNAL")
    reader = Reader(log, [discovered(name)])
    logged.execute(f"INSERT INTO {name} VALUES (1, 0, {LONG}, {LONG}), (2, 0, 'short', NULL)", ["b", "c"])
    logged.execute(f"UPDATE {name} SET a = 1")
    logged.execute(f"UPDATE {name} SET c = 'new' WHERE id = 1")
    logged.execute(f"UPDATE {name} SET id = 9 WHERE id = 1")
    rows = reader.read_to(logged)[2:]
    assert [(*fact, row["__unchanged"]) for row, fact in zip(rows, told(rows, "id", "a", "b", "c"), strict=True)] == [
        ("update", 1, 1, None, None, ["b", "c"]),
        ("update", 2, 1, "short", None, None),
        ("update", 1, 1, None, "new", ["b"]),
        ("delete", 1, None, None, None, None),
        ("insert", 9, 1, None, "new", ["b"]),
    ]
    logged.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    logged.execute(f"UPDATE {name} SET a = 2 WHERE id = 9")
    logged.execute(f"UPDATE {name} SET id = 10 WHERE id = 9")
    rows = reader.read_to(logged)
    assert told(rows, "id", "a") == [("update", 9, 2), ("delete", 9, 2), ("insert", 10, 2)]
    [large] = logged.execute(f"SELECT b FROM {name} WHERE id = 10").fetchone() or []
    assert [(row["b"] == large, row["__unchanged"]) for row in rows] == [(True, None)] * 3


def test_a_truncation_comes_in_its_place(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    reader = Reader(log, [discovered(name)])
    with logged.transaction():
        logged.execute(f"INSERT INTO {name} VALUES (1, 'a')")
        logged.execute(f"TRUNCATE {name}")
        logged.execute(f"INSERT INTO {name} VALUES (1, 'b')")
    assert told(reader.read_to(logged), "id", "v") == [("insert", 1, "a"), ("truncate", None, None), ("insert", 1, "b")]


def test_odd_names_domains_and_generated_columns_are_read_as_they_are(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    odd = f'{name} "Ünï" %s; --'
    column = "sel'ect \"x\" 'y"
    made = sql.SQL("CREATE TABLE {} ({} int PRIMARY KEY, twice int GENERATED ALWAYS AS ({} * 2) STORED)")
    logged.execute(made.format(*map(sql.Identifier, (odd, column, column))))
    try:
        reader = Reader(log, [discovered(odd)])
        logged.execute(sql.SQL("INSERT INTO {} VALUES (1), (2)").format(sql.Identifier(odd)))
        assert told(reader.read_to(logged), column, "twice") == [("insert", 1, 2), ("insert", 2, 4)]
        log.forget([f"public.{odd}", "public.nothing"])
        state = log.state()
        assert state is not None and state.tables == ()
    finally:
        logged.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(odd)))


def test_a_partitioned_table_is_one(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)")
    logged.execute(f"CREATE TABLE {name}_low PARTITION OF {name} FOR VALUES FROM (0) TO (10)")
    reader = Reader(log, [discovered(name)])
    # The columns of a partition may come in another order; one that is made later is of the table, too.
    logged.execute(f"CREATE TABLE {name}_high (v text, id int NOT NULL)")
    logged.execute(f"ALTER TABLE {name} ATTACH PARTITION {name}_high FOR VALUES FROM (10) TO (20)")
    logged.execute(f"INSERT INTO {name} VALUES (1, 'a'), (11, 'b')")
    logged.execute(f"UPDATE {name} SET id = 12 WHERE id = 1")
    rows = reader.read_to(logged)
    assert told(rows, "id", "v") == [("insert", 1, "a"), ("insert", 11, "b"), ("delete", 1, None), ("insert", 12, "a")]
    assert set(reader.batches[0].rows) <= {f"public.{name}"}


def test_a_large_transaction_comes_in_bounded_parts_that_nobody_may_show_yet(
    log: PostgresChangeLog,
    logged: psycopg.Connection,
    name: str,
    discovered: Discovered,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_follower, "LARGEST", 1 << 20)
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    reader = Reader(log, [discovered(name)])
    logged.execute(f"INSERT INTO {name} VALUES (-1, 'before')")
    logged.execute(f"INSERT INTO {name} SELECT i, repeat('x', 100) FROM generate_series(0, 49999) i")
    logged.execute(f"INSERT INTO {name} VALUES (-2, 'after')")
    rows = reader.read_to(logged)
    assert [row["id"] for row in rows] == [-1, *range(50000), -2]
    parts = [each for each in reader.batches if each.rows]
    assert len(parts) > 5 and max(each.rows[f"public.{name}"].nbytes for each in parts) < 3 << 20
    # What was committed before it is never held up; its last part may come with what was committed after it.
    first = parts[0].rows[f"public.{name}"]
    assert first["id"].to_pylist() == [-1] and parts[0].upto is not None
    for part in parts[1:]:
        ids = part.rows[f"public.{name}"]["id"].to_pylist()
        assert (part.upto is None) == (ids[-1] in range(49999)) and (ids[0] in range(50000) or ids == [-2])


CHANGES = {
    "ADD COLUMN w int": "new column 'w' .integer",
    "DROP COLUMN v": "lost column 'v'",
    "RENAME COLUMN v TO w": "lost column 'v', has a new column 'w'",
    "ALTER COLUMN v TYPE varchar(3)": "character varying.3. in column 'v', which was text",
    "RENAME TO {name}_b": "is now called public.t",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_changes_is_refused_by_name_and_what_was_before_is_read(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered, change: str
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    logged.execute(f"CREATE TABLE {name}_other (id int PRIMARY KEY)")
    try:
        reader = Reader(log, [discovered(name), discovered(f"{name}_other")])
        stream = log.follow(list(reader.followed.values()), wait_seconds=0.05)
        assert not next(stream).rows
        logged.execute(f"INSERT INTO {name} VALUES (1, 'a')")
        logged.execute(f"ALTER TABLE {name} {change.format(name=name)}")
        after = f"{name}_b" if "RENAME TO" in change else name
        with logged.transaction():
            logged.execute(f"INSERT INTO {name}_other VALUES (1)")
            logged.execute(f"INSERT INTO {after} (id) VALUES (2)")
        before = []
        with pytest.raises(SchemaError, match=f"public.{name} .*{CHANGES[change]}"):
            before.extend(stream)
        rows = [(each, batch["id"].to_pylist()) for changes in before for each, batch in changes.rows.items()]
        assert rows == [(f"public.{name}", [1])] and before[-1].upto is not None
    finally:
        logged.execute(f"DROP TABLE IF EXISTS {name}_other, {name}_b")
