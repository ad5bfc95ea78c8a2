"""Splits by chance or time: each side is computed by itself, so that rows would go to both or to neither."""

from __future__ import annotations

import pytest

from lakeward.errors import SpecError
from lakeward.pipelines.document import read_document
from lakeward.pipelines.graph import read_graph
from lakeward.pipelines.spec import read_spec


def read(where: str, query: str = "select * from s", outputs: str = "good bad", then: str = "select * from a") -> None:
    lines = ["pipeline: p", "nodes:", "  s: {source: main.raw.s}", f'  a: {{transform: "{query}"}}']
    lines += [f'  b: {{transform: "{then}"}}']
    lines += [f'  cut: {{split: {{input: b, where: "{where}", true: good, false: bad}}}}', "outputs:"]
    lines += [f"  - {{dataset: main.m.{name}, from: {name}, strategy: replace}}" for name in outputs.split()]
    read_graph(read_spec(*read_document("\n".join(lines), "p.yml")))


@pytest.mark.parametrize(
    ("where", "query", "then"),
    [
        ("random() < 0.5", "select * from s", "select * from a"),
        ("uuid()::varchar < '8'", "select * from s", "select * from a"),
        ("ts > now() - interval 7 day", "select * from s", "select * from a"),
        ("d < current_date", "select * from s", "select * from a"),
        ("d < Today()", "select * from s", "select * from a"),
        ("r < 0.5", "select *, random() as r from s", "select * from a"),
        ("x < 0.5", "select *, random() as R from s", "select r + 1 as x from a"),
        ("x < 0.5", "select *, random() as r from s", "select x from (select r as x from a)"),
        ("r < 0.5", "select *, random() as r from s", "select columns('.*') from a"),
        ("x < 0.5", "select *, random() as r from s", "select * rename (r as x) from a"),
        ("x < 0.5", "select *, random() as r from s", "select x from a as t(x)"),
        ("x < 0.5", "select *, random() as r from s", "select (a).r as x from a"),
        ("x < 0.5", "select random() as r, r + 1 as x from s", "select * from a"),
        ("v > 1", "select *, random() as r from s", "select a.* from a join s using (r)"),
        ("v > 1", "select *, random() as r from s", "select a.* from a natural join s"),
        ("v > 1", "select *, random() as r from s", "select v, r from a group by all"),
        ("v > 1", "select *, random() as r from s where r < 0.5", "select * from a"),
        ("s.b < 0.5", "select {'b': random()} as s from s", "select * from a"),
        ("v > 1", "select v, unnest(range((random() * 9)::int)) as u from s", "select * from a"),
        ("v > 1", "select * from s where random() < 0.5", "select * from a"),
        ("v > 1", "select * from s using sample 10%", "select * from a"),
        ("v > 1", "select * from s tablesample 10%", "select * from a"),
        ("v > 1", "select *, random() as r from s", "select v from a order by r limit 3"),
    ],
)
def test_a_row_that_could_go_to_both_sides_is_refused(where: str, query: str, then: str) -> None:
    with pytest.raises(SpecError, match=r"p\.yml:6: node 'cut' splits by chance or by the time"):
        read(where, query, then=then)


@pytest.mark.parametrize(
    ("where", "query"),
    [
        ("v > 1", "select * from s"),
        ("v > 1", "select *, uuid() as r, now() as at from s"),
        ("v > 1", "select a.v, random() as r from s as a left join s as b on a.id = b.id where b.v > 1"),
        ("d < date '2024-01-01' and hash(v) % 10 < 8", "select * from s"),
    ],
)
def test_chance_that_decides_nothing_does_no_harm(where: str, query: str) -> None:
    read(where, query)


def test_of_one_side_alone_nothing_is_lost() -> None:
    read("random() < 0.5", outputs="good")


def test_a_join_hands_chance_on_and_a_model_computes_it_once() -> None:
    nodes = [
        "  s: {source: main.raw.s}",
        "  l: {source: main.raw.l}",
        '  a: {transform: "select *, random() as r from s"}',
        "  j: {join: {left: l, right: a, on: [id]}}",
        "  m: {model: {input: j, model: m@1, features: [v], outputs: {y: double}}}",
    ]

    def split(given: str, where: str) -> None:
        cut = f'  cut: {{split: {{input: {given}, where: "{where}", true: good, false: bad}}}}'
        outputs = [f"  - {{dataset: main.m.{name}, from: {name}, strategy: replace}}" for name in ("good", "bad")]
        text = "\n".join(["pipeline: p", "nodes:", *nodes, cut, "outputs:", *outputs])
        read_graph(read_spec(*read_document(text, "p.yml")))

    for column in ("r", "r_right"):
        with pytest.raises(SpecError, match="by chance"):
            split("j", f"{column} < 0.5")
    split("j", "v > 1")
    split("m", "r < 0.5")
