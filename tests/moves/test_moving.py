"""A table gets another name in its catalog: rows, history and files stay, writers and readers go on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyiceberg.exceptions import NoSuchTableError

import lakeward
from lakeward.control.identifiers import LEGACY_NAMESPACE, TableIdentifier, home
from lakeward.control.moves import Moves, Relocation
from lakeward.errors import LeaseLost, MoveRefused
from lakeward.storage.moving import POINTS
from lakeward.testing import AtStep, raise_at
from support.moves import COLUMNS, Poller, count_names, finished_and_taken_back, to_its_home, warehouse_files


def move(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> Relocation:
    relocation = to_its_home(dataset)
    workspace.moving.move(dataset.record, relocation)
    return relocation


def test_a_new_table_is_born_where_the_settings_say(legacy: lakeward.Dataset) -> None:
    record = legacy.record
    assert record.iceberg_namespace is None
    assert record.identifier == TableIdentifier(LEGACY_NAMESPACE, record.slugs[2])


def test_two_datasets_of_one_slug_have_a_table_each(workspace: lakeward.Workspace) -> None:
    made = [
        workspace.create_dataset(f"two.{schema}.orders", columns=COLUMNS, primary_key=["id"], arm="iceberg")
        for schema in ("north", "south")
    ]
    for number, dataset in enumerate(made):
        dataset.write([{"id": number, "note": "a"}], mode="append")
        dataset.write([{"id": number + 10, "note": "b"}], mode="append")
    names = [dataset.record.identifier.name for dataset in made]
    assert names == ["orders", f"orders_{made[1].record.uid.hex[:8]}"]
    for number, dataset in enumerate(made):
        move(workspace, dataset)
        assert dataset.record.identifier == home(dataset.record.slugs)
        assert dataset.record.iceberg_table is None
        assert sorted(dataset.to_arrow()["id"].to_pylist()) == [number, number + 10]


def test_moves_and_goes_on(workspace: lakeward.Workspace, legacy: lakeward.Dataset) -> None:
    before, files, old = legacy.digest(), warehouse_files(legacy), legacy.record
    relocation = move(workspace, legacy)
    assert legacy.record.identifier == relocation.target
    assert warehouse_files(legacy) == files
    assert legacy.digest() == before == workspace.dataset(legacy.name).digest()
    # Whoever has looked before the move finds it all the same.
    assert workspace.storage.digest(old) == before
    legacy.write([{"id": 3, "note": "c"}], mode="append")
    legacy.write([{"id": 1, "note": "new"}], mode="upsert")
    assert legacy.to_arrow(version=1).num_rows == 2
    assert sorted(legacy.to_arrow()["note"].to_pylist()) == ["b", "c", "new"]
    workspace.moving.move(legacy.record, relocation.back())
    assert (legacy.record.iceberg_namespace, legacy.record.iceberg_table) == (None, None)
    assert legacy.to_arrow().num_rows == 3


def test_a_name_that_is_taken_is_refused(workspace: lakeward.Workspace, legacy: lakeward.Dataset) -> None:
    relocation = to_its_home(legacy)
    catalog = workspace.moving._finishing._arms["iceberg"]._tables.catalog
    catalog.create_namespace_if_not_exists(relocation.target.namespace[:1])
    catalog.create_namespace_if_not_exists(relocation.target.namespace)
    other = catalog.create_table(relocation.target.parts, catalog.load_table(relocation.source.parts).schema())
    with pytest.raises(MoveRefused, match="another table has that name"):
        workspace.moving.move(legacy.record, relocation)
    assert catalog.load_table(other.name()).metadata.table_uuid == other.metadata.table_uuid
    assert legacy.record.identifier == relocation.source
    legacy.write([{"id": 3, "note": "c"}], mode="append")
    catalog.drop_table(other.name())


def test_a_move_from_elsewhere_is_refused(workspace: lakeward.Workspace, legacy: lakeward.Dataset) -> None:
    relocation = move(workspace, legacy)
    with pytest.raises(MoveRefused, match="it was moved meanwhile"):
        workspace.moving.move(legacy.record, relocation)
    assert legacy.to_arrow().num_rows == 2


@pytest.mark.parametrize("point", POINTS)
def test_what_is_cut_short_is_finished(
    opens: Callable[..., lakeward.Workspace], workspace: lakeward.Workspace, legacy: lakeward.Dataset, point: str
) -> None:
    relocation, before = to_its_home(legacy), legacy.digest()
    with opens(raise_at(point, KeyboardInterrupt())) as other, pytest.raises(KeyboardInterrupt):
        other.moving.move(other.dataset(legacy.name).record, relocation)
    assert legacy.digest() == before
    workspace.recover()
    moved = point != "move:opened"
    assert legacy.record.identifier == (relocation.target if moved else relocation.source)
    assert Moves(workspace.database).places(legacy.record.id) == [legacy.record.identifier]
    catalog = workspace.moving._finishing._arms["iceberg"]._tables.catalog
    with pytest.raises(NoSuchTableError):
        catalog.load_table((relocation.source if moved else relocation.target).parts)
    assert legacy.digest() == before
    assert legacy.write([{"id": 3, "note": "c"}], mode="append").version > 1


def test_who_wakes_up_before_it_renames_leaves_a_table_that_was_moved_back(
    opens: Callable[..., lakeward.Workspace], workspace: lakeward.Workspace, legacy: lakeward.Dataset
) -> None:
    relocation = to_its_home(legacy)
    with opens(AtStep("move:rename", lambda: finished_and_taken_back(workspace, legacy, relocation))) as other:
        with pytest.raises(LeaseLost, match="was taken over"):
            other.moving.move(other.dataset(legacy.name).record, relocation)
    assert legacy.record.identifier == relocation.source and legacy.to_arrow().num_rows == 2
    assert count_names(workspace, relocation) == 1


def test_readers_never_miss_it(workspace: lakeward.Workspace, legacy: lakeward.Dataset) -> None:
    relocation = to_its_home(legacy)
    rows, names = Poller([lambda: legacy.to_arrow().num_rows]), Poller([lambda: count_names(workspace, relocation)])
    with rows, names:
        for _ in range(10):
            workspace.moving.move(legacy.record, relocation)
            workspace.moving.move(legacy.record, relocation.back())
    assert set(rows.seen) == {2} and len(rows.seen) > 5
    assert set(names.seen) == {1} and len(names.seen) > 20
