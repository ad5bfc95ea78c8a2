"""Tables whose columns have changed since their files were written: what is written goes into them by field id."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import DecimalType, DoubleType, LongType, StringType

import lakeward
from lakeward.errors import ColumnMismatch
from lakeward.storage.arms.iceberg.columns import TableColumns
from lakeward.types.logical import parse_type
from lakeward.types.schema import Column, Schema
from support.other_engine import OtherEngine

_numbers = itertools.count(1)
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    with lakeward.open(tmp_path_factory.mktemp("evolved") / "home") as opened:
        yield opened


def made(workspace: lakeward.Workspace, columns: dict[str, str], rows: Rows, parts: list[str]) -> lakeward.Dataset:
    name = f"main.evolved.d{next(_numbers)}"
    dataset = workspace.create_dataset(name, columns, ["id"], arm="iceberg", partition_by=parts)
    dataset.write(rows)
    return dataset


def evolve(
    workspace: lakeward.Workspace,
    dataset: lakeward.Dataset,
    change: Callable[[UpdateSchema], object],
    columns: list[tuple[int, str, str]],
) -> lakeward.Dataset:
    """Change a table's columns and, to match, what the control plane has of the dataset: ids, names, types.

    The table gets a snapshot under its new columns, which no row is added by; the old files stay as they are.
    """
    other = OtherEngine(workspace, dataset)
    with other.table.update_schema() as update:
        change(update)
    other.table.append(other.table.schema().as_arrow().empty_table())
    kept = [{"id": id_, "name": name, "type": type_} for id_, name, type_ in columns]
    with psycopg.connect(workspace.database.libpq_url) as connection:
        connection.execute(
            "UPDATE lakeward.datasets SET columns = %s WHERE id = %s", (json.dumps(kept), dataset.record.id)
        )
        connection.execute(
            "UPDATE lakeward.arm_versions SET snapshot_id = %s WHERE dataset_id = %s", (other.main, dataset.record.id)
        )
    return workspace.dataset(dataset.name)


def assert_rows(workspace: lakeward.Workspace, dataset: lakeward.Dataset, wanted: Rows) -> None:
    assert dataset.to_arrow().sort_by("id").to_pylist() == wanted
    assert dataset.to_arrow(identity=True).column("__row_id").null_count == 0
    dataset.verify()
    names = tuple(dataset.schema.names)
    found = OtherEngine(workspace, dataset).table.scan(selected_fields=names).to_arrow()
    assert found.select(names).sort_by("id").to_pylist() == wanted


VERBS = ["append", "replace", "upsert", "mirror", "append_new"]
PARTS: list[list[str]] = [[], ["bucket(2, id)"], ["n"]]


def written(before: Rows, rows: Rows, mode: str) -> Rows:
    """Return what the dataset holds after new rows, of which none but an upsert's or a mirror's has an old key."""
    if mode in ("replace", "mirror"):
        return rows
    keys = {row["id"] for row in rows}
    return sorted([*(row for row in before if row["id"] not in keys), *rows], key=lambda row: row["id"])


@pytest.mark.parametrize("parts", PARTS, ids=str)
@pytest.mark.parametrize("mode", VERBS)
def test_u06_a_column_was_added(workspace: lakeward.Workspace, mode: str, parts: list[str]) -> None:
    dataset = made(workspace, {"id": "long", "n": "string"}, [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}], parts)
    added = lambda update: update.add_column("p", StringType())  # noqa: E731
    dataset = evolve(workspace, dataset, added, [(1, "id", "long"), (2, "n", "string"), (7, "p", "string")])
    before = [{"id": 1, "n": "a", "p": None}, {"id": 2, "n": "b", "p": None}]
    assert_rows(workspace, dataset, before)
    rows = [{"id": 1 if mode in ("upsert", "mirror") else 4, "n": "a", "p": "x"}, {"id": 5, "n": None, "p": "y"}]
    dataset.write(rows, mode=mode)
    assert_rows(workspace, dataset, written(before, rows, mode))


@pytest.mark.parametrize("parts", PARTS, ids=str)
@pytest.mark.parametrize("mode", VERBS)
def test_u06_columns_were_swapped_renamed_and_promoted(
    workspace: lakeward.Workspace, mode: str, parts: list[str]
) -> None:
    columns = {"id": "int", "n": "string", "f": "float", "d": "decimal(5,2)"}
    old = [
        {"id": 1, "n": "a", "f": 0.5, "d": Decimal("1.25")},
        {"id": 2, "n": "b", "f": None, "d": None},
    ]
    dataset = made(workspace, columns, old, parts)

    def change(update: UpdateSchema) -> None:
        update.update_column("id", LongType())
        update.update_column("f", DoubleType())
        update.update_column("d", DecimalType(12, 2))
        update.rename_column("n", "m")
        update.move_first("f")
        update.move_after("id", "__version")

    now = [(4, "d", "decimal(12,2)"), (2, "m", "string"), (1, "id", "long"), (3, "f", "double")]
    dataset = evolve(workspace, dataset, change, now)
    before = [
        {"d": Decimal("1.25"), "m": "a", "id": 1, "f": 0.5},
        {"d": None, "m": "b", "id": 2, "f": None},
    ]
    assert_rows(workspace, dataset, before)
    matched = mode in ("upsert", "mirror")
    rows = [
        {"d": Decimal("1234567890.12"), "m": "b", "id": 2 if matched else 3, "f": 0.1},
        {"d": None, "m": None, "id": 2**40, "f": None},
    ]
    result = dataset.write(rows, mode=mode)
    assert (result.rows_updated, result.rows_added) == ((1, 1) if matched else (0, 2))
    assert_rows(workspace, dataset, written(before, rows, mode))


@pytest.mark.parametrize("mode", VERBS)
def test_u06_a_column_was_dropped_and_added_again(workspace: lakeward.Workspace, mode: str) -> None:
    old = [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}]
    dataset = made(workspace, {"id": "long", "n": "string"}, old, [])
    with OtherEngine(workspace, dataset).table.update_schema() as update:
        update.delete_column("n")
    again = lambda update: update.add_column("n", StringType())  # noqa: E731
    dataset = evolve(workspace, dataset, again, [(1, "id", "long"), (7, "n", "string")])
    before: Rows = [{"id": 1, "n": None}, {"id": 2, "n": None}]
    assert_rows(workspace, dataset, before)
    rows = [{"id": 1 if mode in ("upsert", "mirror") else 3, "n": "a"}]
    dataset.write(rows, mode=mode)
    assert_rows(workspace, dataset, written(before, rows, mode))


def test_u06_a_column_that_the_dataset_does_not_have_gets_nulls(workspace: lakeward.Workspace) -> None:
    dataset = made(workspace, {"id": "long", "n": "string"}, [{"id": 1, "n": "a"}], [])

    def change(update: UpdateSchema) -> None:
        update.add_column("q", StringType())
        update.move_first("q")

    dataset = evolve(workspace, dataset, change, [(1, "id", "long"), (2, "n", "string")])
    dataset.write([{"id": 1, "n": "c"}, {"id": 2, "n": "b"}], mode="upsert")
    assert_rows(workspace, dataset, [{"id": 1, "n": "c"}, {"id": 2, "n": "b"}])
    assert OtherEngine(workspace, dataset).table.scan().to_arrow()["q"].to_pylist() == [None, None]


@pytest.mark.parametrize("mode", VERBS)
def test_u06_a_column_that_the_table_lacks_is_an_error_before_anything_is_written(
    workspace: lakeward.Workspace, mode: str
) -> None:
    dataset = made(workspace, {"id": "long", "n": "string"}, [{"id": 1, "n": "a"}], [])
    with psycopg.connect(workspace.database.libpq_url) as connection:
        columns = [*dataset.schema.to_json(), {"id": 9, "name": "p", "type": "string"}]
        connection.execute(
            "UPDATE lakeward.datasets SET columns = %s WHERE id = %s", (json.dumps(columns), dataset.record.id)
        )
    other, main = OtherEngine(workspace, dataset), OtherEngine(workspace, dataset).main
    with pytest.raises(ColumnMismatch, match="has no column of field id 9, 'p'"):
        workspace.dataset(dataset.name).write([{"id": 2, "n": "b", "p": "x"}], mode=mode)
    assert (other.main, other.refs) == (main, {})


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"id": "string", "n": "string"}, "column 'id' is a string, and a long in its Iceberg table"),
        ({"id": "long", "n": "json"}, None),
        ({"id": "int", "n": "string"}, None),
        ({"id": "timestamp", "n": "string"}, "column 'id' is a timestamp, and a long"),
        ({"id": "long", "n": "list<string>"}, r"column 'n' is a list<string>, and a string"),
        ({"id": "long", "n": "decimal(4,2)"}, r"column 'n' is a decimal\(4,2\), and a string"),
    ],
)
def test_a_type_that_the_table_can_not_take_is_refused(
    workspace: lakeward.Workspace, declared: dict[str, str], why: str | None
) -> None:
    dataset = made(workspace, {"id": "long", "n": "string"}, [{"id": 1, "n": "a"}], [])
    table = OtherEngine(workspace, dataset).table.schema()
    columns = Schema(tuple(Column(name, parse_type(type_), at) for at, (name, type_) in enumerate(declared.items(), 1)))
    if why is None:
        assert TableColumns(table, columns, "dataset d", {}).arrow.names[:2] == ["id", "n"]
        return
    with pytest.raises(ColumnMismatch, match=why):
        TableColumns(table, columns, "dataset d", {})


def test_u06_files_of_old_columns_are_compacted_to_new_ones(workspace: lakeward.Workspace) -> None:
    dataset = made(workspace, {"id": "int", "n": "string"}, [{"id": 1, "n": "a"}], ["bucket(2, id)"])
    for number in range(2, 12):
        dataset.write([{"id": number, "n": f"{number}"}])

    def change(update: UpdateSchema) -> None:
        update.update_column("id", LongType())
        update.rename_column("n", "m")
        update.add_column("p", StringType())
        update.move_first("p")

    dataset = evolve(workspace, dataset, change, [(7, "p", "string"), (1, "id", "long"), (2, "m", "string")])
    dataset.write([{"id": 1, "m": "b", "p": "x"}, {"id": 2**40, "m": None, "p": None}], mode="upsert")
    wanted = [
        {"p": "x", "id": 1, "m": "b"},
        *({"p": None, "id": number, "m": f"{number}"} for number in range(2, 12)),
        {"p": None, "id": 2**40, "m": None},
    ]
    assert_rows(workspace, dataset, wanted)
    identity, digest = dataset.to_arrow(identity=True).sort_by("id"), dataset.digest()
    before = len(list(OtherEngine(workspace, dataset).table.scan().plan_files()))
    report = workspace.maintain(dataset.name)
    assert report.failures == []
    tasks = list(OtherEngine(workspace, dataset).table.scan().plan_files())
    assert len(tasks) < before
    assert {task.file.partition[0] for task in tasks} == {0, 1}
    assert_rows(workspace, dataset, wanted)
    assert dataset.to_arrow(identity=True).sort_by("id") == identity
    assert dataset.digest() == digest
