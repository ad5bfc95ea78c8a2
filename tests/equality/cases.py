"""Every kind of node, as pipelines have it and as plain SQL has it."""

from __future__ import annotations

from support.pipeline_oracle import STRATEGIES, TAKE_DELTAS, NodeCase

B = frozenset({"b"})
SHARED = "a.v, a.s, b.s as s_right"

JOINS = {
    "inner": f"select a.id, b.g, {SHARED} from a join b on a.g = b.g",
    "left": f"select a.id, a.g, {SHARED} from a left join b on a.g = b.g",
    "right": "select coalesce(a.id, -1 - b.g) as id, b.g, a.v, b.s as w from b left join a on a.g = b.g",
    "full": (
        "select id, g, v, (select s from b where b.g = a.g) as w from a "
        "union all select -1 - g, g, null, s from b where g not in (select g from a )"
    ),
    "semi": "select * from a where g in (select g from b )",
    "anti": "select * from a where g not in (select g from b )",
    "cross": "select a.id, a.g, a.v, a.s, b.g as g_right, b.s as s_right from a , b ",
}
"""What each join of `a` with `b` on `g` gives."""


def _join(how: str, *, lookup: bool) -> NodeCase:
    on = "" if how == "cross" else ", on: [g]"
    nodes = f"  joined: {{join: {{left: a, right: b{on}, how: {how}}}}}"
    given = "joined"
    if how in ("right", "full"):
        # Rows without a partner have no id.
        nodes += '\n  named: {transform: "select coalesce(id, -1 - g) as id, g, v, s_right as w from joined"}'
        given = "named"
    return NodeCase(
        f"{how} join{' with a lookup' if lookup else ''}",
        nodes,
        {given: JOINS[how]},
        ("id", "g_right") if how == "cross" else ("id",),
        delta=lookup and how not in ("right", "full"),
        lookups=B if lookup else frozenset(),
    )


def _split(nulls: str) -> NodeCase:
    more = "v > 1 or v is null" if nulls == "true" else "v > 1"
    return NodeCase(
        f"split with nulls to {nulls}",
        f'  parted: {{split: {{input: a, where: "v > 1", "true": high, "false": low, nulls: "{nulls}"}}}}',
        {"high": f"select * from a where {more}", "low": f"select * from a where not coalesce({more}, false)"},
    )


LEFT_JOIN = "select a.id, a.v, b.s from a left join b on a.g = b.g"
UNION = "select id, v, s from a union all select -1 - g, null, s from b "
FILTER = "select id, v * 2 as twice, upper(s) as loud from a where v > 0"
TOTALS = "select g, count(*) as n, cast(sum(v) as bigint) as total, max(s) as last from a group by g"
SUM = "select 1 as id, cast(fsum(v) as bigint) as total from a "
"""An aggregate that DuckDB alone knows for one."""

CASES = {
    case.name: case
    for case in (
        NodeCase("source", "", {"a": "select * from a "}),
        NodeCase("transform", f'  kept: {{transform: "{FILTER}"}}', {"kept": FILTER}),
        NodeCase("aggregate", f'  totals: {{transform: "{TOTALS}"}}', {"totals": TOTALS}, ("g",), delta=False),
        NodeCase("sum", f'  summed: {{transform: "{SUM}"}}', {"summed": SUM}, delta=False),
        NodeCase("SQL with a lookup", f'  both_: {{transform: "{LEFT_JOIN}"}}', {"both_": LEFT_JOIN}, lookups=B),
        NodeCase("SQL over two sources", f'  both_: {{transform: "{LEFT_JOIN}"}}', {"both_": LEFT_JOIN}, delta=False),
        NodeCase("UNION ALL", f'  both_: {{transform: "{UNION}"}}', {"both_": UNION}),
        *(_join(how, lookup=True) for how in JOINS),
        *(_join(how, lookup=False) for how in ("inner", "anti", "full")),
        *(_split(nulls) for nulls in ("true", "false")),
        NodeCase(
            "model",
            "  scored: {model: {input: a, model: twice@1, features: [v], outputs: {y: float}}}",
            {"scored": "select *, cast(v * 2 + 1 as float) as y from a "},
        ),
        NodeCase(
            "python row by row",
            "  doubled: {python: {call: twice.py:twice, inputs: {rows: a}, columns: {id: long, twice: long}, "
            "row_wise: true}}",
            {"doubled": "select id, v * 2 as twice from a "},
        ),
    )
}

JOIN_CASES = {name: case for name, case in CASES.items() if " join" in name}
"""Those of the joins."""

WITH_EVERY_STRATEGY = ("source", "aggregate")
"""`replace` and `mirror` compute everything each time, as the others do in full and after a delete or a replace. How
they write it is the same for all nodes: these two show it, and the random sequences take all five for every node."""

WITH_EVERY_DELTA = ("UNION ALL", "left join with a lookup")
"""A node gives the rows of a window, whatever becomes of them; a strategy writes rows, whatever gave them. So it is
these that meet all that take deltas, and the others one each, in turn."""


def strategies(name: str) -> tuple[str, ...]:
    """Return those that a case is played with, through every window and on every pair of arms."""
    if name in WITH_EVERY_STRATEGY:
        return STRATEGIES
    return TAKE_DELTAS if name in WITH_EVERY_DELTA else (TAKE_DELTAS[list(CASES).index(name) % len(TAKE_DELTAS)],)
