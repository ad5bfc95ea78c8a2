"""The identity columns on every arm: position, an id that is never given twice, moment and version of insertion."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from lakeward.errors import ExpectationFailed
from lakeward.storage.identity import IDENTITY_FIELDS
from lakeward.storage.requests import PreparedVersion
from support.arms import ArmUnderTest, HeldDataset

INDEX, ID, CREATED, VERSION = (field.name for field in IDENTITY_FIELDS)


@pytest.fixture
def dataset(arm: ArmUnderTest) -> HeldDataset:
    return arm.create({"id": "long"})


def write(dataset: HeldDataset, *ids: int, mode: str = "append") -> None:
    dataset.write([{"id": number} for number in ids], mode)


def identities(dataset: HeldDataset, **request: Any) -> list[tuple[int, ...]]:
    return [(row["id"], row[INDEX], row[ID], row[VERSION]) for row in dataset.rows(identity=True, **request)]


def test_appends_go_on_and_a_replace_numbers_from_zero_but_never_reuses_an_id(dataset: HeldDataset) -> None:
    write(dataset, 10, 11)
    write(dataset, 12)
    assert identities(dataset) == [(10, 0, 0, 1), (11, 1, 1, 1), (12, 2, 2, 2)]
    write(dataset, 20, 21, mode="replace")
    write(dataset, 22)
    assert identities(dataset) == [(20, 0, 3, 3), (21, 1, 4, 3), (22, 2, 5, 4)]
    assert identities(dataset, version=2) == [(10, 0, 0, 1), (11, 1, 1, 1), (12, 2, 2, 2)]


def test_an_aborted_write_in_between_leaves_positions_without_gaps_and_ids_unique(dataset: HeldDataset) -> None:
    write(dataset, 1)

    def refuse(prepared: PreparedVersion) -> None:
        raise ExpectationFailed("no")

    for mode in ("append", "replace"):
        with pytest.raises(ExpectationFailed):
            dataset.write([{"id": 2}, {"id": 3}], mode, audit=refuse)
    write(dataset, 4)
    assert identities(dataset) == [(1, 0, 0, 1), (4, 1, 1, 4)]


def test_ids_go_on_after_the_dataset_was_emptied(dataset: HeldDataset) -> None:
    write(dataset, 1, 2)
    dataset.write([], "replace", allow_empty=True)
    write(dataset, 3)
    assert identities(dataset) == [(3, 0, 2, 3)]


def test_created_at_is_the_moment_of_the_write_by_the_databases_clock(dataset: HeldDataset) -> None:
    write(dataset, 1)
    write(dataset, 2)
    first, second = (row[CREATED] for row in dataset.rows(identity=True))
    history = [each for each in dataset.workspace.transactions() if each.dataset == dataset.created.name]
    assert [second, first] == [each.opened_at.astimezone(dt.UTC) for each in history]
    assert first < second


def test_types_and_order_of_the_identity_columns(dataset: HeldDataset) -> None:
    write(dataset, 1)
    table = dataset.to_arrow(identity=True)
    assert table.schema.names == ["id", *(field.name for field in IDENTITY_FIELDS)]
    assert [table.schema.field(field.name).type for field in IDENTITY_FIELDS] == [
        pa.int64(),
        pa.int64(),
        pa.timestamp("us", "UTC"),
        pa.int64(),
    ]


def test_hidden_unless_asked_for_but_usable_in_a_filter(dataset: HeldDataset) -> None:
    write(dataset, 10, 11)
    write(dataset, 12)
    assert dataset.to_arrow().schema.names == ["id"]
    assert dataset.to_arrow(where="__row_index >= 1 AND __version = 1").to_pylist() == [{"id": 11}]
    assert dataset.to_arrow(where="__created_at < '1999-01-01'").num_rows == 0
    assert dataset.to_arrow(where="__row_id = 2", identity=True).select(["id", ID]).to_pylist() == [{"id": 12, ID: 2}]
