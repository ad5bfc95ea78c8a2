"""Readers and writers at once on one server: nothing fails, and what was written is there once."""

from __future__ import annotations

from pathlib import Path

import lakeward
from lakeward.testing.server_load import COLUMNS, READS, load


def test_readers_and_writers_at_once(tmp_path: Path) -> None:
    """A request that fails is an error of the load itself."""
    names = {arm: f"main.load.on_{arm}" for arm in ("postgres", "iceberg")}
    with lakeward.open(tmp_path / "home") as workspace:
        for arm, name in names.items():
            workspace.create_dataset(name, COLUMNS, arm=arm).write([{"id": 1, "note": "n", "amount": 1}])
        found = load(tmp_path / "home", list(names.values()), readers=10, writers=3, seconds=3)
        rows = {name: workspace.dataset(name).to_arrow().num_rows for name in names.values()}
    assert found.seconds.keys() == {*READS, "append of 100 rows"}
    assert rows == {name: 1 + found.written[name] for name in names.values()}
