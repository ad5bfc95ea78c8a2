"""One table and two datasets: those that adopt it at once, and one that was dropped and can come back."""

from __future__ import annotations

from collections.abc import Callable

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
