"""Two that adopt one table at once, under different names: one dataset has it, and nothing is made of the other one."""

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
