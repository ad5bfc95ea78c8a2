"""One table and two datasets: those that adopt it at once, and one that was dropped and can come back."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pyarrow as pa
import pytest
from pyiceberg.table import Table

import lakeward
from lakeward.errors import ConflictError
from lakeward.testing import AtStep

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "note": ["a", "b"]})


def test_the_first_has_it(
    workspace: lakeward.Workspace, opens: Callable[..., lakeward.Workspace], make_table: Callable[..., Table]
) -> None:
    table = make_table(ROWS)
    name = ".".join(table.name())
    late = workspace.adopting.plan(name, "main.adopted.late")
    refused: list[str] = []

    def meanwhile() -> None:
        with pytest.raises(ConflictError, match="is being adopted as that") as caught:
            workspace.adopting.run(late)
        refused.append(caught.value.message)

    with opens(AtStep("intent:opened", meanwhile)) as other:
        other.adopting.run(other.adopting.plan(name, "main.adopted.early"))
    assert len(refused) == 1 and "main.adopted.early" in refused[0]
    with pytest.raises(ConflictError, match=r"main\.adopted\.early"):
        workspace.adopting.run(late)
    assert workspace.dataset("main.adopted.early").to_arrow().num_rows == 2
    assert "main.adopted.late" not in [each.name for each in workspace.datasets()]


def test_the_table_of_a_dropped_dataset_is_its_own_as_long_as_that_can_come_back(
    workspace: lakeward.Workspace, make_table: Callable[..., Table]
) -> None:
    table = make_table(ROWS)
    name = ".".join(table.name())
    workspace.adopting.run(workspace.adopting.plan(name, "main.adopted.gone"))
    workspace.drop_dataset("main.adopted.gone")
    with pytest.raises(ConflictError, match=r"belongs to dataset main\.adopted\.gone, which is dropped") as caught:
        workspace.adopting.plan(name, "main.adopted.again")
    assert caught.value.next_step == "lakeward dataset undrop main.adopted.gone"
    with table.transaction() as transaction:
        transaction.set_properties({"lakeward.dataset": "theirs"})
    with pytest.raises(ConflictError, match="another workspace, theirs"):
        workspace.adopting.plan(name, "main.adopted.again")


def test_a_table_that_was_there_outlives_its_dataset(
    workspace: lakeward.Workspace, make_table: Callable[..., Table]
) -> None:
    """Also inside of the warehouse: its directory was not made for the dataset, and others may know its files."""
    table = make_table(ROWS)
    workspace.adopting.run(workspace.adopting.plan(".".join(table.name()), "main.adopted.ended"))
    workspace.dataset("main.adopted.ended").write([{"id": 3, "note": "c"}])
    workspace.drop_dataset("main.adopted.ended")
    with psycopg.connect(workspace.database.libpq_url) as connection:
        connection.execute(
            "UPDATE lakeward.drops SET dropped_at = now() - interval '9 days', undo_until = now() "
            "WHERE id = (SELECT max(id) FROM lakeward.drops)"
        )
    done = workspace.maintain()
    assert done.purged == ["dataset main.adopted.ended"]
    # Other tests leave datasets whose tables they have taken away.
    assert [failure for failure in done.failures if failure.dataset == "main.adopted.ended"] == []
    assert any("was not made for it" in note for note in done.notes)
    assert table.refresh().scan().to_arrow().num_rows == 3
    assert "lakeward.dataset" not in table.properties
