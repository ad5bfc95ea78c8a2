"""Tables to which another engine added Parquet files that no Iceberg writer wrote: their columns have no field ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

import lakeward
from lakeward.errors import DataError

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "note": ["a", "b"]})


def add(table: Table) -> None:
    """Add a file of two rows as it is."""
    path = Path(table.location().removeprefix("file://"), "data", "added.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(ROWS, path)
    table.add_files([f"file://{path}"])


def test_a_table_with_such_a_file_is_not_adopted(
    workspace: lakeward.Workspace, make_table: Callable[..., Table]
) -> None:
    table = make_table(schema=ROWS.schema)
    add(table)
    assert table.scan().to_arrow().num_rows == 2
    with pytest.raises(DataError, match=r"added\.parquet, whose column 'id' has no field id"):
        workspace.adopting.plan(".".join(table.name()), "main.adopted.added")
    # Once its rows are written anew, they can be read.
    table.overwrite(table.scan().to_arrow())
    workspace.adopting.run(workspace.adopting.plan(".".join(table.name()), "main.adopted.added"))
    assert workspace.dataset("main.adopted.added").to_arrow().to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize("renumber", [False, True])
def test_nor_are_its_rows_taken_for_those_of_a_dataset(
    workspace: lakeward.Workspace, make_table: Callable[..., Table], renumber: bool
) -> None:
    table = make_table(ROWS)
    workspace.adopting.run(workspace.adopting.plan(".".join(table.name()), f"main.adopted.ours_{renumber}"))
    made = workspace.dataset(f"main.adopted.ours_{renumber}")
    add(table.refresh())
    with pytest.raises(DataError, match="has no field id"):
        made.adopt(renumber=renumber)
    assert made.version == 1 and made.to_arrow().to_pylist() == ROWS.to_pylist()
