"""The analysis of user SQL: one read-only SELECT over declared names."""

from __future__ import annotations

import pytest

from hostile_sql import HOSTILE
from lakeward.compute.sql import MAX_SQL_LENGTH, analyse, canonical, without_semicolon
from lakeward.errors import SqlError

ODD_NAMES = ('x"; drop table t; --', 'a\\"b', "a'b", "two words", "select", "a.b", "a/b", "Ünïcode 🦆", "1st")


@pytest.mark.parametrize("sql", HOSTILE.values(), ids=list(HOSTILE))
def test_s03_hostile_sql_is_refused(sql: str) -> None:
    with pytest.raises(SqlError) as raised:
        analyse(sql, ["orders"], named_columns=False)
    assert raised.value.exit_code == 2
    assert "position" in raised.value.fields


@pytest.mark.parametrize("name", ODD_NAMES)
def test_s03_n01_odd_names_work_as_plain_names(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    assert analyse(f"select * from {quoted}", [name, "orders"]).reads == (name,)


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("select * from orders", ("orders",)),
        ("from orders", ("orders",)),
        ("table orders", ("orders",)),
        ("SELECT * FROM ORDERS", ("orders",)),
        ("select 1 as one", ()),
        ("(((select 1 as one)))", ()),
        ("select * from (values (1)) as v(a)", ()),
        ("select * from customers c join orders o using (id)", ("customers", "orders")),
        ("select 1 as a from orders where id in (from customers select id)", ("orders", "customers")),
        ("with c as (from orders), d as (from c) select * from d", ("orders",)),
        ("with orders as (select * from orders) select * from orders", ("orders",)),
        ("with recursive r as (select 1 as n union all select n + 1 from r where n < 5) select * from r", ()),
        ("select * from (with c as (from orders) from c) join customers using (id)", ("orders", "customers")),
        ("select * from orders, unnest(items) as u(item)", ("orders",)),
        ("select * from orders, lateral (select orders.id + 1 as next_id)", ("orders",)),
        ("select * from range(3) as t(n)", ()),
        ("select id from orders union all by name select id from customers", ("orders", "customers")),
        ("select * from orders pivot (sum(amount) for kind in ('a', 'b'))", ("orders",)),
        ("select list_transform(items, lambda x: x + 1) as more from orders", ("orders",)),
        ("select 'read_csv(''/x'')' as text -- from '/etc/passwd'\nfrom orders", ("orders",)),
        ("select id from orders;", ("orders",)),
        ("select id from orders ; ; -- the end\n", ("orders",)),
        ("select max(id) filter (id > 1) as m from orders qualify row_number() over () = 1", ("orders",)),
    ],
)
def test_what_a_query_reads(sql: str, reads: tuple[str, ...]) -> None:
    assert analyse(sql, ["orders", "customers"]).reads == reads


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("with a as (select * from b), b as (from orders) select * from a", "b"),
        ("with a as (select * from a) select * from a", "a"),
        ("select * from (with z as (from orders) from z) join z using (id)", "z"),
        ("select * from orders where id in (with z as (from orders) select id from z) and exists (from z)", "z"),
    ],
)
def test_a_common_table_expression_is_seen_only_in_its_scope(sql: str, name: str) -> None:
    with pytest.raises(SqlError, match=f"unknown name '{name}'"):
        analyse(sql, ["orders"])


def test_a_wrong_name_gets_a_caret_and_the_nearest_right_one() -> None:
    with pytest.raises(SqlError) as raised:
        analyse("select a.id\nfrom orders a\njoin custmers c using (id)", ["orders", "customers"])
    assert str(raised.value) == (
        "unknown name 'custmers'; declared are: customers, orders (line 3, column 6)\n"
        "  3 | join custmers c using (id)\n"
        "    |      ^\n"
        "Next: did you mean customers?"
    )
    assert (raised.value.fields["line"], raised.value.fields["column"]) == (3, 6)


def test_a_dataset_read_by_its_full_name_is_told_how_to_declare_it() -> None:
    with pytest.raises(SqlError) as raised:
        analyse("select * from main.raw.payments", ["orders"])
    assert raised.value.next_step is not None
    assert "{payments: {source: main.raw.payments}}" in raised.value.next_step


@pytest.mark.parametrize("name", ["range", "List", "struct"])
def test_a_column_that_reads_like_the_beginning_of_a_type_is_to_be_quoted(name: str) -> None:
    with pytest.raises(SqlError, match="syntax error at or near '5'") as raised:
        analyse(f"select * from orders where {name} < 5", ["orders"])
    assert raised.value.next_step == f'if {name} is a column, write its name in quotes: "{name}" <'
    assert analyse(f'select * from orders where "{name}" < 5', ["orders"]).reads == ("orders",)


def test_a_syntax_error_shows_the_place() -> None:
    with pytest.raises(SqlError) as raised:
        analyse("select id\nfrm orders where", ["orders"])
    assert "syntax error at or near 'orders' (line 2, column 5)\n  2 | frm orders where\n    |     ^" in str(
        raised.value
    )


def test_an_open_quote_is_shown_where_it_opens() -> None:
    with pytest.raises(SqlError, match="opened and never closed") as raised:
        analyse("select 'fine' as a,\n  'open as b", ["orders"])
    assert (raised.value.fields["line"], raised.value.fields["column"]) == (2, 3)


@pytest.mark.parametrize(
    "sql",
    ["select count(*) from orders", "select id, amount * 2 from orders", "select id::int from orders", "values (1)"],
)
def test_result_columns_need_names(sql: str) -> None:
    with pytest.raises(SqlError, match=r"ha(s|ve) no name"):
        analyse(sql, ["orders"])
    assert analyse(sql, ["orders"], named_columns=False).text == sql


def test_names_of_result_columns_are_those_of_the_first_branch_of_a_union() -> None:
    assert analyse("select 1 as a union all select 2", []).reads == ()
    with pytest.raises(SqlError, match="has no name"):
        analyse("select 1 union all select 2 as a", [])


def test_a_very_long_or_deep_query_is_refused_and_not_run_into() -> None:
    with pytest.raises(SqlError, match="at most"):
        analyse("select 1 as a -- " + "x" * MAX_SQL_LENGTH, [])
    with pytest.raises(SqlError, match="too deeply"):
        analyse("select " + "(" * 20_000 + "1" + ")" * 20_000 + " as a", [])


def test_canonical_ignores_layout_comments_and_case_of_keywords_only() -> None:
    one = canonical("select id, 'Text' as t from orders -- comment\nwhere amount>1")
    assert one == canonical("/* other */ SELECT\n  id,\n  'Text' AS t\nFROM orders\nWHERE amount > 1;")
    assert one != canonical("select id, 'text' as t from orders where amount > 1")
    assert one != canonical("select id, 'Text' as T from orders where amount > 1")
    assert canonical('select "A" as a from t') != canonical('select "a" as a from t')


def test_without_semicolon_keeps_the_users_text() -> None:
    assert without_semicolon("select ';' as a -- ; \n ; -- end") == "select ';' as a -- ; \n "
    assert without_semicolon("select 1 as a -- end") == "select 1 as a -- end"
