"""Tables that are made a second time: the first one was emptied, nobody needed it, and maintenance took it away."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.control.identifiers import LEGACY_NAMESPACE, home
from support.moves import COLUMNS, catalog_of

Opens = Callable[..., lakeward.Workspace]

ROWS = [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]


def forget_table(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> None:
    """Cancel the flip that brought a table, and let maintenance find the empty one a day later."""
    location = Path(dataset.locate()["iceberg"]["location"].removeprefix("file://"))
    identifier = dataset.record.identifier
    workspace.flip(dataset.name).cancel()
    then = time.time() - 86_400
    for path in location.rglob("*"):
        os.utime(path, (then, then))
    workspace.maintain(dataset.name)
    assert not catalog_of(workspace).table_exists(identifier.parts)


@pytest.mark.parametrize("again", [True, False])
def test_it_is_found_where_it_was_made_the_second_time(opens: Opens, again: bool) -> None:
    """Whatever the settings say then; the second of two equal slugs had another name in the legacy namespace."""
    with opens(iceberg=f"born_in_place = {str(not again).lower()}") as workspace:
        made = [
            workspace.create_dataset(f"again_{again}.{schema}.orders_{again}", COLUMNS, ["id"], arm="postgres")
            for schema in ("a", "b")
        ]
        for each in made:
            each.write(ROWS, mode="append")
            workspace.flip(each.name).run("iceberg", until="verify")
        forget_table(workspace, made[1])
    with opens(iceberg=f"born_in_place = {str(again).lower()}") as workspace:
        second = workspace.dataset(made[1].name)
        workspace.flip(second.name).run("iceberg")
        record = second.record
        assert record.identifier == home(record.slugs) if again else record.identifier.namespace == LEGACY_NAMESPACE
        assert catalog_of(workspace).table_exists(record.identifier.parts)
        assert second.to_arrow().num_rows == 2
