"""A copy that was compared while its table is moved counts afterwards: nothing is published to a name that goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from lakeward.errors import ConflictError
from lakeward.testing import AtStep
from support.crashes import unclean
from support.moves import COLUMNS, catalog_of, to_its_home


def test_a_copy_counts_when_its_table_has_arrived(
    workspace: lakeward.Workspace, opens: Callable[..., lakeward.Workspace]
) -> None:
    dataset = workspace.create_dataset("beside.a.flip", COLUMNS, ["id"], arm="postgres")
    dataset.write([{"id": 1, "note": "a"}], mode="append")
    flip = workspace.flip(dataset.name)
    flip.run("iceberg", until="backfill")
    move = to_its_home(dataset)
    refused: list[str] = []

    def meanwhile() -> None:
        with pytest.raises(ConflictError, match="is being moved") as caught:
            flip.stage("verify")
        refused.append(caught.value.message)

    with opens(AtStep("move:begun", meanwhile)) as other:
        assert [each.outcome for each in other.moves.apply(dataset.name)] == ["moved"]
    assert refused and workspace.replication.lag(dataset.record, "iceberg").waits == 1
    assert catalog_of(workspace).load_table(move.target.parts).scan().to_arrow().num_rows == 0
    flip.run("iceberg")
    assert catalog_of(workspace).load_table(move.target.parts).scan().to_arrow().num_rows == 1
    assert dataset.arm == "iceberg" and unclean(workspace, [dataset.name]) == []
