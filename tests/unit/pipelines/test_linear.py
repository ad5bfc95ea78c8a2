"""Which queries are linear in new rows; and, against DuckDB, that those are."""

from __future__ import annotations

import duckdb
import pytest

from lakeward.compute.aggregating import aggregates
from lakeward.pipelines.document import read_document
from lakeward.pipelines.graph import Graph, read_graph
from lakeward.pipelines.linear import CONSTANT, LINEAR, OTHER, linearity
from lakeward.pipelines.spec import read_spec


def graph(query: str, full: tuple[str, ...] = ("look",)) -> Graph:
    lines = ["pipeline: p", "nodes:"]
    lines += [
        f"  {name}: {{source: main.raw.{name}{', window: full' if name in full else ''}}}"
        for name in ("new", "more", "look")
    ]
    lines += ["  query:", "    transform: |", *(f"      {line}" for line in query.split("\n"))]
    lines += ["outputs: [{dataset: a.b.c, from: query, strategy: append_always}]"]
    return read_graph(read_spec(*read_document("\n".join(lines), "p.yml")))


LINEAR_QUERIES = [
    "select * from new",
    "select id, v + 1 as w from new where v > 1",
    "select n.id, l.v as w from new n join look l on n.id = l.id",
    "select n.id, l.v as w from new n left join look l on n.id = l.id",
    "select l.v as w, n.id from look l join new n using (id)",
    "select n.id, l.v as w from new n cross join look l",
    "select n.id, l.v as w from new n, look l where n.v = l.v",
    "select * from new where id in (select id from look)",
    "select * from new where not exists (select 1 from look where look.id = new.id)",
    "select id, unnest([v, v + 1]) as w from new",
    "select * from new union all select * from more",
    "select * from new union all select * from new",
    "select id from (select * from new where v > 1) as inside where id < 4",
    "select * from new order by id",
    "select * from new n anti join look l on n.id = l.id",
]
OTHER_QUERIES = [
    "select count(*) as n from new",
    "select id, count(*) as n from new group by id",
    "select distinct v from new",
    "select * from new order by id limit 1",
    "select id, row_number() over (order by id) as n from new",
    "select id from new qualify row_number() over (order by v) = 1",
    "select * from new union select * from more",
    "select * from new except select * from look",
    "select * from new union all select * from look",
    "select a.id from new a join new b on a.v = b.v",
    "select a.id from new a join more b on a.v = b.v",
    "select l.id, n.v from look l left join new n on l.id = n.id",
    "select l.id, n.v from look l full join new n on l.id = n.id",
    "select n.id, l.v from new n right join look l on l.id = n.id",
    "select * from look where id not in (select id from new)",
    "select * from new where v > (select avg(v) from new)",
    "with w as (select * from new) select count(*) as n from w",
    "select n.id from new n left join look l on n.id = l.id join new m on m.id = n.id",
    "select id from (select id, count(*) as c from new group by id) as inside",
    "(select * from new) order by id limit 1",
    "(select * from new union all select * from more) limit 2",
    "((select * from new) limit 2) union all select * from more",
    "select * from ((select * from new) limit 2)",
    "select * from new tablesample reservoir(2 rows) repeatable (1)",
    "select * from (select * from new) as s tablesample reservoir(2 rows) repeatable (1)",
    "select n.v from look l join look m full join new n on m.id = n.id on l.id = m.id",
    "select l.id, n.v from look l join look m left join new n on m.id = n.id on l.id = m.id",
    "select l.id from look l join look m anti join new n on m.id = n.id on l.id = m.id",
    "select a from generate_series(1, (select v from new limit 1)) as t(a)",
    "select product(v) as p from new",
    "select histogram(v) as h from new",
    "select geomean(v) as g from new",
    "select weighted_avg(v, id) as g from new",
    "select v.sum() as s from new",
    "select (v).max() as s from new",
    "select main.sum(v) as s from new",
]


@pytest.mark.parametrize("query", LINEAR_QUERIES)
def test_these_are_linear_and_new_rows_are_enough(query: str) -> None:
    assert linearity(graph(query), "query").kind == LINEAR
    with duckdb.connect() as connection:
        connection.execute("create table look as select * from (values (1, 10), (2, 2), (4, 5)) as t(id, v)")
        for name, shift in (("new", 0), ("more", 10)):
            connection.execute(f"create table {name}_old as select id + {shift} as id, id as v from range(4) t(id)")
            connection.execute(f"create table {name}_new as select id + {shift} as id, id as v from range(2, 7) t(id)")

        def rows(*parts: str) -> list[tuple[object, ...]]:
            for name in ("new", "more"):
                union = " union all ".join(f"select * from {name}_{part}" for part in parts)
                connection.execute(f"create or replace view {name} as {union}")
            return connection.execute(query).fetchall()

        assert sorted(rows("old", "new")) == sorted(rows("old") + rows("new"))


@pytest.mark.parametrize("query", OTHER_QUERIES)
def test_these_are_not(query: str) -> None:
    found = linearity(graph(query), "query")
    assert found.kind == OTHER
    assert found.reason.startswith("node query ")


def test_every_aggregate_of_the_engine_is_known_however_it_is_called() -> None:
    with duckdb.connect() as connection:
        query = "select distinct function_name from duckdb_functions() where function_type = 'aggregate'"
        names = [name for (name,) in connection.execute(query).fetchall() if name.isidentifier()]
    assert len(names) > 70
    for name in names:
        for call in (f"{name}(v)", f"main.{name}(v)", f'"{name}"(v)'):
            assert aggregates(f"select {call} as a from new"), call
    assert not aggregates("select list_aggregate([v], 'sum') as a, greatest(v, 1) as g from new")


def test_what_reads_only_whole_sources_is_constant() -> None:
    assert linearity(graph("select * from look"), "query").kind == CONSTANT
