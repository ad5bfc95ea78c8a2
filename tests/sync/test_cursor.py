"""Field cases I01 to I03 and T03 for views, which have no `xmin`: new rows are found by a column whose values grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

import lakeward
from lakeward.errors import SchemaError, UsageError, ValueRefused
from lakeward.wiring.sync_plan import SyncRequest
from lakeward.wiring.syncing import TableSynced
from sync.conftest import SOURCE

Sync = Callable[..., TableSynced]
Rows = Callable[..., list[tuple[object, ...]]]
Connect = Callable[[], psycopg.Connection]

HOUR = {"key": ["id"], "cursor": "at", "lag": "1 hour"}
WAYS = ("incremental", "append")


@pytest.fixture
def view(shop: psycopg.Connection, name: str) -> Iterator[Callable[..., str]]:
    """Makes a table with a column `at` of some type, and a view of it; returns the view's name."""

    def made(type_: str) -> str:
        shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, at {type_})")
        shop.execute(f"CREATE VIEW {name}_view AS SELECT * FROM {name}")
        return f"{name}_view"

    yield made
    shop.execute(f"DROP VIEW IF EXISTS {name}_view")


def ids(found: list[tuple[object, ...]]) -> list[object]:
    return sorted(row[0] for row in found)  # type: ignore[type-var]


@pytest.mark.parametrize("mode", WAYS)
def test_i01_what_commits_late_comes_within_the_lag_and_nothing_comes_twice(
    shop: psycopg.Connection, connect: Connect, name: str, view: Callable[..., str], sync: Sync, rows: Rows, mode: str
) -> None:
    seen = view("timestamptz DEFAULT clock_timestamp()")
    shop.execute(f"INSERT INTO {name} VALUES (1)")
    sync(seen, mode, **HOUR)
    with connect() as slow:
        slow.execute(f"INSERT INTO {name} VALUES (2)")
        shop.execute(f"INSERT INTO {name} VALUES (3)")
        sync(seen, mode, **HOUR)
        assert ids(rows(seen)) == [1, 3]
    assert sync(seen, mode, **HOUR).written.rows_added == 1
    again = sync(seen, mode, **HOUR)
    # What lies within the lag is read again, and known.
    assert (again.rows_read, again.written.committed) == (3, False)
    assert ids(rows(seen)) == [1, 2, 3]


@pytest.mark.parametrize("mode", WAYS)
def test_i02_rows_of_the_boundary_come_once(
    shop: psycopg.Connection, name: str, view: Callable[..., str], sync: Sync, rows: Rows, mode: str
) -> None:
    seen = view("date")
    how = {"key": ["id"], "cursor": "at", "lag": "0"}
    shop.execute(f"INSERT INTO {name} VALUES (1, '2026-01-01'), (2, '2026-01-01')")
    sync(seen, mode, **how)
    shop.execute(f"INSERT INTO {name} VALUES (3, '2026-01-01'), (4, '2026-01-02')")
    assert sync(seen, mode, **how).written.rows_added == 2
    last = sync(seen, mode, **how)
    assert (last.rows_read, last.written.committed) == (1, False)
    assert ids(rows(seen)) == [1, 2, 3, 4]


@pytest.mark.parametrize("mode", WAYS)
def test_i03_a_failed_sync_moves_no_cursor(
    shop: psycopg.Connection, name: str, view: Callable[..., str], sync: Sync, rows: Rows, mode: str
) -> None:
    seen = view("bigint")
    shop.execute(f"ALTER TABLE {name} ADD COLUMN due timestamptz")
    shop.execute(f"CREATE OR REPLACE VIEW {seen} AS SELECT * FROM {name}")
    how = {"key": ["id"], "cursor": "at", "lag": "0"}
    shop.execute(f"INSERT INTO {name} VALUES (0, 0, now())")
    sync(seen, mode, **how)
    shop.execute(
        f"INSERT INTO {name} SELECT i, i, CASE i WHEN 3 THEN 'infinity' ELSE now() END FROM generate_series(1, 4) i"
    )
    with pytest.raises(ValueRefused, match=r"'due'.*infinity"):
        sync(seen, mode, **how)
    assert ids(rows(seen)) == [0]
    shop.execute(f"UPDATE {name} SET due = now() WHERE id = 3")
    assert sync(seen, mode, **how).written.rows_added == 4
    assert ids(rows(seen)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("type_", "first", "odd", "later"),
    [
        ("timestamptz", "2026-01-01 00:00+00", ["infinity", "-infinity", "0044-03-15 BC", "2999-01-01"], "2026-01-02"),
        ("timestamp", "2026-01-01", ["infinity", "-infinity", "0044-03-15 BC", "2999-01-01"], "2026-01-02"),
        ("date", "2026-01-01", ["infinity", "-infinity", "0044-03-15 BC", "2999-01-01"], "2026-01-02"),
        ("numeric", "1e30", ["NaN"], "1000000000000000000000000000001"),
        ("int", "-5", [], "-4"),
    ],
)
def test_t03_no_odd_value_hides_a_row_that_comes_later(
    shop: psycopg.Connection,
    name: str,
    view: Callable[..., str],
    sync: Sync,
    rows: Rows,
    type_: str,
    first: str,
    odd: list[str],
    later: str,
) -> None:
    """Infinities, NaN, nulls, and a day far ahead: they come, and the cursor stays among the others."""
    seen = view(type_)
    how = {"key": ["id"], "cursor": "at", "lag": "0", "text": ["at"]}
    for number, value in enumerate([first, *odd, None], start=1):
        shop.execute(f"INSERT INTO {name} VALUES ({number}, %s)", [value])
    ahead = "2999-01-01" in odd
    assert sync(seen, "incremental", **how).rows_read == len(odd) + 2
    shop.execute(f"INSERT INTO {name} VALUES (90, %s), (91, NULL)", ["now" if ahead else later])
    shop.execute(f"UPDATE {name} SET at = '-infinity' WHERE id = 3" if ahead else f"UPDATE {name} SET at = at")
    assert sync(seen, "incremental", **how).written.rows_added == 2
    assert ids(rows(seen)) == [*range(1, len(odd) + 3), 90, 91]
    # The text is the source's own: no other date, no other number.
    there = shop.execute(f"SELECT id, CAST(at AS text) FROM {name} WHERE id < 90 ORDER BY id").fetchall()
    assert [row for row in sorted(rows(seen)) if row[0] < 90 and type_ != "timestamptz"] == (  # type: ignore[operator]
        [] if type_ == "timestamptz" else there
    )


def test_a_clock_that_is_set_back_is_covered_by_the_lag_and_zones_change_nothing(
    shop: psycopg.Connection, name: str, view: Callable[..., str], sync: Sync, rows: Rows
) -> None:
    """The hour that comes twice in autumn, in local time; and a session of another zone."""
    seen = view("timestamp")
    shop.execute(f"INSERT INTO {name} VALUES (1, '2025-10-26 02:59')")
    sync(seen, "incremental", **HOUR)
    shop.execute(f"INSERT INTO {name} VALUES (2, '2025-10-26 02:01')")
    assert sync(seen, "incremental", **HOUR).written.rows_added == 1
    role = shop.execute("SELECT current_user").fetchone()
    assert role is not None
    shop.execute(f"ALTER ROLE {role[0]} SET TimeZone = 'Pacific/Kiritimati'")
    try:
        shop.execute(f"INSERT INTO {name} VALUES (3, '2025-10-26 02:30')")
        assert sync(seen, "incremental", **HOUR).written.rows_added == 1
    finally:
        shop.execute(f"ALTER ROLE {role[0]} RESET TimeZone")
    assert ids(rows(seen)) == [1, 2, 3]


def test_another_way_to_find_rows_begins_with_all_of_them(
    ws: lakeward.Workspace, shop: psycopg.Connection, name: str, view: Callable[..., str], sync: Sync
) -> None:
    view("int")
    by_cursor = {"cursor": "at", "lag": "0"}
    shop.execute(f"INSERT INTO {name} SELECT i, i FROM generate_series(1, 9) i")
    assert sync(name, "incremental", **by_cursor).rows_read == 9
    assert sync(name, "incremental", **by_cursor).rows_read == 1
    assert sync(name, "incremental").rows_read == 9
    assert sync(name, "incremental").rows_read == 0
    assert sync(name, "incremental", **by_cursor).rows_read == 9
    assert sync(name, "incremental", cursor="at", lag="2").rows_read == 3
    assert sync(name).written.rows_unchanged == 9
    assert sync(name, "incremental", **by_cursor).rows_read == 9
    [action] = ws.sources.plan_sync(SyncRequest(SOURCE, [name], "incremental", **by_cursor))[0].actions()  # type: ignore[arg-type]
    assert "by at with a lag of 0" in action


@pytest.mark.parametrize(
    ("mode", "how", "error", "text"),
    [
        ("append", {"cursor": "at", "lag": "0"}, UsageError, "without a key they would come twice"),
        ("incremental", {"cursor": "at", "key": ["id"]}, UsageError, "would be skipped for ever"),
        ("incremental", {"lag": "0", "key": ["id"]}, UsageError, "none is named"),
        ("full", {"cursor": "at", "lag": "0"}, UsageError, "full reads every row"),
        ("incremental", {"cursor": "no", "lag": "0", "key": ["id"]}, SchemaError, "has no column 'no'"),
        ("incremental", {"cursor": "note", "lag": "0", "key": ["id"]}, UsageError, "'note' is text, which can't be"),
        ("incremental", {"cursor": "at", "lag": "-1 hour", "key": ["id"]}, UsageError, "'-1 hour' is no lag"),
        ("incremental", {"cursor": "id", "lag": "1 hour", "key": ["id"]}, UsageError, "'1 hour' is no lag"),
        ("incremental", {"key": ["id"]}, UsageError, "does not tell which rows changed"),
    ],
)
def test_what_would_skip_or_double_rows_is_refused(
    shop: psycopg.Connection,
    name: str,
    view: Callable[..., str],
    sync: Sync,
    mode: str,
    how: dict[str, object],
    error: type[Exception],
    text: str,
) -> None:
    seen = view("timestamptz")
    shop.execute(f"CREATE OR REPLACE VIEW {seen} AS SELECT *, 'x' AS note FROM {name}")
    with pytest.raises(error, match=text):
        sync(seen, mode, **how)
