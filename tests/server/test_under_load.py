"""Readers and writers at once on one server: nothing fails, and what was written is there once."""

from __future__ import annotations

from pathlib import Path

from lakeward.testing.server_load import READS, load


def test_readers_and_writers_at_once(tmp_path: Path) -> None:
    """A lost or doubled row, or a request that fails, is an error of the load itself."""
    found = load(tmp_path / "home", readers=10, writers=3, seconds=3)
    assert found.seconds.keys() == {*READS, "append of 100 rows"}
    assert all(found.seconds.values())
