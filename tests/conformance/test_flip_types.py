"""Every value of the type table goes to the other arm and back: the same rows, with their identity and digests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import lakeward
from conformance.test_types import EXTREMES
from lakeward.migration.options import Options
from support.arms import ArmUnderTest, HeldDataset
from support.rows import arrow_table

COLUMNS = {"id": "long", **{f"c{number}": type_ for number, type_ in enumerate(EXTREMES)}}
ROWS = max(map(len, EXTREMES.values())) + 1
"""The last one has nulls only."""


def row(number: int, shift: int = 0) -> dict[str, Any]:
    """Return a row that has of each type the value of that number, as far as there are so many."""
    values = [dict(enumerate(each)).get((number + shift) % ROWS) for each in EXTREMES.values()]
    return dict(zip(COLUMNS, [number, *values], strict=True))


def seen(held: HeldDataset, arm: str) -> dict[str, object]:
    """Return what readers see: all rows, those since each version, in their order and with identity; and the digest."""
    since = {version: held.to_arrow(arm, identity=True, since=version) for version in range(held.version)}
    tables = {"all": held.to_arrow(arm, identity=True), **since}
    rows = {what: repr(table.sort_by("__row_index").to_pylist()) for what, table in tables.items()}
    assert len(set(rows.values())) == len(rows) - 2, "each write brought rows, but for the deletion; since 0 is all"
    return {**rows, "digest": str(held.digest(arm=arm))}


def test_all_types_there_and_back(shared: lakeward.Workspace) -> None:
    held = ArmUnderTest(shared, "postgres").create(COLUMNS, ["id"])
    name = held.created.name
    writes: list[tuple[str, list[dict[str, Any]]]] = [
        ("append", [row(number) for number in range(ROWS)]),
        ("append", [row(number) for number in range(ROWS, ROWS + 3)]),
        ("upsert", [row(number, shift=1) for number in range(2, 5)]),
        ("append", [row(ROWS + 3)]),
    ]
    for verb, rows in writes:
        held.write(arrow_table(held.schema, rows), verb)
    held.write(pa.table({"id": [0]}), "delete")
    held.write(arrow_table(held.schema, [row(1, shift=2)]), "upsert")
    before = seen(held, "postgres")
    head = held.version
    for to in ("iceberg", "postgres"):
        flip = shared.flip(name)
        flip.run(to)
        flip.complete(Options(confirmed=name))
        assert held.record.route.primary_arm == to
        assert held.version == head, "a flip makes no version"
        assert seen(held, to) == before, to
