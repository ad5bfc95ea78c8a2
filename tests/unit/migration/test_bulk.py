"""Which datasets a bulk flip takes up, and in which order."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from lakeward.control.names import DatasetName
from lakeward.control.routes import Route
from lakeward.control.tree import DatasetRecord
from lakeward.errors import UnknownObject, UsageError
from lakeward.migration.bulk import BulkFlip, leaves_first, selected
from lakeward.types.schema import Schema


def record(name: str, rows: int = 0) -> DatasetRecord:
    path = DatasetName.parse(name)
    slugs = (path.catalog.lower(), path.schema.lower(), path.dataset.lower().replace(".", "_"))
    route = Route("pg", "postgres", None, 1)
    schema = Schema.declare({"id": "long"})
    now = datetime.now(UTC)
    return DatasetRecord(
        hash(name), uuid.uuid4(), path, slugs, schema, route, 1, rows, None, None, rows, rows, "ok", now
    )


def names(records: list[DatasetRecord]) -> list[str]:
    return [each.name.removeprefix("m.s.") for each in records]


DIAMOND = [("m.s.raw", "m.s.left"), ("m.s.raw", "m.s.right"), ("m.s.left", "m.s.top"), ("M.S.RIGHT", "m.s.top")]


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([], ["left", "raw", "right", "top"]),
        (DIAMOND, ["top", "left", "right", "raw"]),
        # A dataset in between that is not to be flipped keeps the others in order; one may read what it wrote itself.
        ([("m.s.raw", "m.s.gone"), ("m.s.gone", "m.s.top"), ("m.s.top", "m.s.top")], ["left", "right", "top", "raw"]),
    ],
)
def test_consumers_come_before_producers(edges: list[tuple[str, str]], expected: list[str]) -> None:
    assert names(leaves_first([record(f"m.s.{name}") for name in ("raw", "left", "right", "top")], edges)) == expected


def test_a_circle_is_told() -> None:
    with pytest.raises(UsageError, match="in a circle"):
        leaves_first([record("m.s.a"), record("m.s.b")], [("m.s.a", "m.s.b"), ("m.s.b", "m.s.a")])


@pytest.mark.parametrize(
    ("asked", "patterns", "expected"),
    [
        ([], ["m.s.*"], ["a", "b"]),
        ([], ["S.*", "*.b"], ["a", "b", "m.other.b"]),
        (["m.s.b"], ["s.b"], ["b"]),
        (["M.S.A"], [], ["a"]),
        ([], ["odd.*"], ['m.odd."x.y"']),
    ],
)
def test_names_and_patterns(asked: list[str], patterns: list[str], expected: list[str]) -> None:
    records = [record(name) for name in ("m.s.a", "m.s.b", "m.other.b", 'm.odd."x.y"')]
    assert names(selected(records, asked, patterns)) == expected


def test_orders_by_size_and_name_and_no_other() -> None:
    bulk = BulkFlip([record("m.s.a", 10), record("m.s.b", 2)], [], lambda _: pytest.fail("nothing is flipped"))
    assert names(bulk.choose(select=["*"], order="size")) == ["b", "a"]
    assert names(bulk.choose(select=["*"], order="name")) == ["a", "b"]
    with pytest.raises(UnknownObject, match="only by leaves-first, size, name"):
        bulk.choose(select=["*"], order="age")
