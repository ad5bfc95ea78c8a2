"""Rows that an engine reads in place are those that storage streams, in every type, after deletes, in every window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeward
from conformance.test_types import EXTREMES
from lakeward.compute.engine import Input
from lakeward.compute.engines.duckdb import DuckDBEngine
from lakeward.errors import StorageError
from lakeward.in_place import InPlace
from lakeward.storage.requests import ReadRequest
from support.arms import ArmUnderTest, HeldDataset
from support.rows import arrow_table

TYPES = list(EXTREMES)
COLUMNS = {"id": "long", **{f"c{number}": type_ for number, type_ in enumerate(TYPES)}}


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    return DuckDBEngine(threads=1, temp_directory=tmp_path / "scratch")


def extremes(start: int) -> list[dict[str, Any]]:
    """Return rows that hold every extreme of every type, and nulls."""
    rows = zip_longest(*(EXTREMES[type_] for type_ in TYPES))
    return [{"id": start + id_, **dict(zip(list(COLUMNS)[1:], row, strict=True))} for id_, row in enumerate(rows)]


def source(dataset: HeldDataset, request: ReadRequest, *, in_place: bool) -> Input:
    """Return rows of a dataset as an input."""
    storage, record = dataset.workspace.storage, dataset.record

    def opened(columns: Sequence[str]) -> pa.RecordBatchReader:
        return storage.read(record, replace(request, columns=tuple(columns)))

    def placed() -> InPlace | None:
        return storage.in_place([(record, request)])[0]

    return Input(record.schema, opened, placed if in_place else None)


def found(engine: DuckDBEngine, rows: Input) -> str:
    """Return the rows that a query sees, as text in which NaN is equal to itself and zeros have signs."""
    table = engine.run("from t order by id", {"t": rows}).read_all()
    return f"{table.schema} {table.to_pylist()}"


def test_every_version_and_window_is_read_in_place(shared: lakeward.Workspace, engine: DuckDBEngine) -> None:
    dataset = ArmUnderTest(shared, "iceberg").create(COLUMNS, ["id"])
    first = extremes(0)
    dataset.write(arrow_table(dataset.schema, first))
    dataset.write(arrow_table(dataset.schema, extremes(50)), "append")
    changed = [{**first[2], "id": 1}, {**first[0], "id": 52}, {**first[0], "id": 99}]
    dataset.write(arrow_table(dataset.schema, changed), "upsert")
    for version, since, ids in [(1, None, 10), (2, None, 20), (3, None, 21), (3, 1, 12), (3, 2, 3)]:
        request = ReadRequest(version=version, since=since)
        placed = source(dataset, request, in_place=True)
        assert placed.in_place is not None and placed.in_place() is not None
        rows = found(engine, placed)
        assert rows == found(engine, source(dataset, request, in_place=False))
        assert rows.count("'id'") == ids


def test_what_can_not_be_read_in_place_is_streamed(arm: ArmUnderTest) -> None:
    dataset = arm.create({"id": "long"})
    storage, request = arm.workspace.storage, ReadRequest(arm=arm.name)
    assert storage.in_place([(dataset.record, request)]) == [None], "there is nothing yet"
    dataset.write([{"id": 1}])
    assert (storage.in_place([(dataset.record, request)]) != [None]) == (arm.name == "iceberg")


def test_a_directory_that_looks_like_a_pattern_is_streamed(
    shared_url: str, tmp_path: Path, engine: DuckDBEngine
) -> None:
    with lakeward.open(tmp_path / "home", database_url=shared_url, warehouse=tmp_path / "[ab]*") as workspace:
        dataset = ArmUnderTest(workspace, "iceberg").create({"id": "long"})
        dataset.write([{"id": 1}])
        assert "[{'id': 1}]" in found(engine, source(dataset, ReadRequest(), in_place=True))


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(file.read_bytes()[:-9])])
def test_a_broken_file_gives_the_error_of_a_read(
    shared: lakeward.Workspace, engine: DuckDBEngine, damage: Callable[[Path], object]
) -> None:
    dataset = ArmUnderTest(shared, "iceberg").create({"id": "long"})
    dataset.write([{"id": 1}])
    place = shared.storage.in_place([(dataset.record, ReadRequest())])[0]
    assert place is not None
    damage(Path(place.paths[0]))
    with pytest.raises(StorageError) as read:
        shared.storage.read(dataset.record).read_all()
    with pytest.raises(StorageError) as run:
        found(engine, source(dataset, ReadRequest(), in_place=True))
    assert str(run.value) == str(read.value)
