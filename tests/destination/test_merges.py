"""Merges of dlt, with nested tables, give on both arms what dlt's own destination for DuckDB makes of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import dlt
import pytest

from destination.conftest import ARMS, Made, Rows

STRATEGIES: dict[str, dict[str, Any]] = {
    "by_key": {"primary_key": "id"},
    "deleting": {"primary_key": "id", "columns": {"gone": {"hard_delete": True}, "seq": {"dedup_sort": "desc"}}},
    "by_part": {"merge_key": ["part"], "columns": {"gone": {"hard_delete": True}}},
    "by_both": {"merge_key": "part", "primary_key": "id", "columns": {"seq": {"dedup_sort": "asc"}}},
    "upserted": {"primary_key": ["id", "part"], "write_disposition": {"disposition": "merge", "strategy": "upsert"}},
    "inserted": {"primary_key": "id", "write_disposition": {"disposition": "merge", "strategy": "insert-only"}},
    "appended": {"write_disposition": "append"},
    "replaced": {"write_disposition": "replace"},
}
LOADS = 2


def some_rows(rng: random.Random, load: int, unique: bool) -> Rows:
    found: Rows = [] if load else [{"id": 9, "part": "c", "name": "n", "gone": False, "seq": 0, "tags": [{"tag": "x"}]}]
    for number in range(rng.randint(2, 5)):
        tags = [{"tag": rng.choice("xyz")} for _ in range(rng.randint(0, 3))]
        place = {"id": rng.randint(1, 4), "part": rng.choice("ab"), "seq": 10 * load + number}
        found.append({**place, "name": f"n{rng.randint(0, 99)}", "gone": rng.random() < 0.3, "tags": tags})
    return list({row["id"]: row for row in found}.values()) if unique else found


@dlt.source(name="strategies")
def source(content: dict[str, Rows]) -> Iterator[Any]:
    for name, how in STRATEGIES.items():
        copies = [{**row, "tags": [dict(tag) for tag in row["tags"]]} for row in content[name]]  # type: ignore[attr-defined]
        yield dlt.resource(copies, **{"name": name, "write_disposition": "merge", **how})


def seen(rows: Callable[[str, str, str], Rows], kind: str, table: str) -> object:
    """What a load can be held to: a table's rows, and those of its nested table by the rows that they belong to."""
    roots, tags = rows("strategies", kind, table), rows("strategies", kind, f"{table}__tags")
    columns = ("id", "part", "name", "gone", "seq")
    parents = {row["_dlt_id"]: tuple(row[column] for column in columns) for row in roots}
    nested = [(parents.get(row["_dlt_parent_id"]), row["_dlt_list_idx"], row["tag"]) for row in tags]
    return sorted(parents.values()), sorted(nested, key=repr)


@pytest.mark.parametrize("load", range(LOADS))
def test_every_strategy_means_what_it_means_to_dlt(
    load: int, pipeline: Made, rows: Callable[[str, str, str], Rows], strategies_seed: int
) -> None:
    rng = random.Random(strategies_seed + load)
    content = {
        # Of several rows with one key dlt keeps any, unless it is told which.
        name: some_rows(rng, load, unique=name in ("by_key", "upserted", "inserted"))
        for name in STRATEGIES
    }
    for kind in ("duckdb", *ARMS):
        pipeline("strategies", kind).run(source(content))
    for table in STRATEGIES:
        expected = seen(rows, "duckdb", table)
        for arm in ARMS:
            assert seen(rows, arm, table) == expected, (table, arm)


@pytest.fixture(scope="module")
def strategies_seed() -> int:
    seed = random.SystemRandom().randrange(2**32)
    print(f"replay with this seed: {seed}")
    return seed
