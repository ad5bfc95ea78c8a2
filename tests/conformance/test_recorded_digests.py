"""A version's first digest stays with it: what changes under our feet later is found, also on one arm alone."""

from __future__ import annotations

import pytest
import sqlalchemy

import lakeward
from lakeward.errors import ParityMismatch
from lakeward.types.digest import Digest


def _recorded(workspace: lakeward.Workspace) -> list[tuple[int, bool]]:
    rows = workspace.database.fetch(
        sqlalchemy.text(
            "SELECT version, digest_high IS NOT NULL AS known FROM lakeward.dataset_transactions ORDER BY version"
        )
    )
    return [(row["version"], row["known"]) for row in rows]


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_the_first_look_is_recorded_and_the_next_compared(workspace: lakeward.Workspace, arm: str) -> None:
    orders = workspace.create_dataset("main.sales.orders", {"id": "long"}, arm=arm)
    orders.write([{"id": 1}])
    assert _recorded(workspace) == [(1, False)]
    first = orders.verify()
    assert first.recorded is None and first.equal
    assert _recorded(workspace) == [(1, True)]
    again = orders.verify()
    assert again.recorded == again.digests[arm] == first.digests[arm]
    orders.write([{"id": 2}])
    assert _recorded(workspace) == [(1, True), (2, True)], "an append adds its rows to a digest that is known"
    appended = orders.verify()
    assert appended.recorded == appended.digests[arm] != first.digests[arm]
    orders.write([{"id": 3}], mode="replace")
    assert orders.verify().recorded is None, "a replace starts anew"


def test_a_row_that_changed_by_hand_is_found_on_one_arm_alone(workspace: lakeward.Workspace) -> None:
    orders = workspace.create_dataset("main.sales.orders", {"id": "long"})
    orders.write([{"id": 1}, {"id": 2}])
    before = orders.verify().digests["postgres"]
    workspace.database.fetch(
        sqlalchemy.text("UPDATE lakeward.dataset_rows SET data = '{\"id\": 3}' WHERE data ->> 'id' = '2'")
    )
    with pytest.raises(ParityMismatch, match="version 1: the rows are not what they were") as caught:
        orders.verify()
    assert str(before) in caught.value.message
    assert caught.value.exit_code == 4


def test_a_copy_records_what_its_audit_found(workspace: lakeward.Workspace) -> None:
    orders = workspace.create_dataset("main.sales.orders", {"id": "long"})
    orders.write([{"id": 1}, {"id": 2}])
    orders.copy_to("iceberg")
    assert _recorded(workspace) == [(1, False), (2, True)]
    parity = orders.verify()
    assert parity.recorded == parity.digests["iceberg"] == parity.digests["postgres"]
    assert isinstance(parity.recorded, Digest)
