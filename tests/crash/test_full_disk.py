"""A full disk below the warehouse: a named error, the dataset unchanged, no files left; it goes on when there is room.

A limit of the process is a full disk that every user can make. A full file system needs a mount, which needs the right
to make one; where this process hasn't it, those cases are not there.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import StorageFull
from lakeward.testing import AtStep
from support.crashes import Driver, content, unclean

CAP_SYS_ADMIN = 21


def may_mount() -> bool:
    status = Path("/proc/self/status")
    if not status.exists():
        return False
    (effective,) = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("CapEff")]
    return bool(int(effective, 16) >> CAP_SYS_ADMIN & 1)


def data_files(warehouse: Path) -> set[Path]:
    return set(warehouse.rglob("*.parquet"))


def test_a_file_that_may_not_grow(
    ws: lakeward.Workspace, driver: Driver, make: Callable[[str], lakeward.Dataset], crash_warehouse: Path
) -> None:
    dataset = make("iceberg")
    dataset.write([{"id": 0, "note": "old"}])
    before = data_files(crash_warehouse)
    for mode in ("append", "replace"):
        write = [[dataset.name, mode, 0, 200_000, "new"]]
        answer = driver.run(write=write, file_limit=100_000).answer()
        assert answer.get("error") == "StorageFull", answer
        assert dataset.name in answer["message"]
        assert content(dataset) == [(0, "old")]
        assert unclean(ws, [dataset.name]) == []
        assert data_files(crash_warehouse) == before
    assert "versions" in driver.run(write=[[dataset.name, "append", 1, 1, "next"]], file_limit=100_000).answer()


def test_reading_needs_no_room(driver: Driver, make: Callable[[str], lakeward.Dataset], ws: lakeward.Workspace) -> None:
    dataset = make("iceberg")
    dataset.write([{"id": 0, "note": "old"}])
    assert driver.run(copy=dataset.name, to="postgres", file_limit=1_000).answer() == {"versions": [2]}
    assert unclean(ws, [dataset.name]) == []


class FullDisk:
    """A small file system of its own.

    Args:
        root: where it is mounted.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._filler = root / "filler"

    def fill(self) -> None:
        """Take all the room that there is."""
        with contextlib.suppress(OSError), self._filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        """Give the room back."""
        self._filler.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FullDisk]:
    root = tmp_path / "disk"
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(root)], check=True)
    try:
        yield FullDisk(root)
    finally:
        subprocess.run(["umount", "-l", str(root)], check=True)


POINTS = ["prepare", "prepare:files", "publish"] if may_mount() else []


@pytest.mark.parametrize("point", POINTS)
def test_a_file_system_that_fills_up_in_the_middle_of_a_write(crash_url: str, disk: FullDisk, point: str) -> None:
    warehouse = disk.root / "warehouse"
    faults = AtStep(point, disk.fill, occurrence=2)
    with lakeward.open(database_url=crash_url, warehouse=warehouse, faults=faults) as workspace:
        dataset = workspace.create_dataset(f"main.full.{point}", {"id": "long", "note": "string"}, arm="iceberg")
        dataset.write([{"id": 0, "note": "old"}])
        before = data_files(warehouse)
        if point == "publish":
            # Decided already: the write stands, and is published when there is room again.
            assert dataset.write([{"id": 1, "note": "new"}]).committed
            with pytest.raises(StorageFull):
                dataset.write([{"id": 2, "note": "next"}])
        else:
            with pytest.raises(StorageFull, match="no space left in the warehouse") as caught:
                dataset.write([{"id": 1, "note": "x" * 5_000_000}])
            assert dataset.name in caught.value.message
        expected = [(0, "old"), (1, "new")] if point == "publish" else [(0, "old")]
        assert content(dataset) == expected
        disk.free()
        workspace.recover()
        assert unclean(workspace, [dataset.name]) == []
        assert point != "prepare" or data_files(warehouse) == before
        dataset.write([{"id": 9, "note": "last"}])
        assert content(dataset) == [*expected, (9, "last")]


@pytest.mark.parametrize("rows", [300_000] if may_mount() else [])
def test_a_write_that_is_larger_than_the_disk(crash_url: str, disk: FullDisk, rows: int) -> None:
    warehouse = disk.root / "warehouse"
    with lakeward.open(database_url=crash_url, warehouse=warehouse) as workspace:
        dataset = workspace.create_dataset("main.full.large", {"id": "long", "note": "string"}, arm="iceberg")
        dataset.write([{"id": 0, "note": "old"}])
        before = data_files(warehouse)
        with pytest.raises(StorageFull):
            dataset.write({"id": number, "note": os.urandom(20).hex()} for number in range(rows))
        assert content(dataset) == [(0, "old")]
        assert data_files(warehouse) == before
        assert unclean(workspace, [dataset.name]) == []
        dataset.write([{"id": 1, "note": "next"}])
        assert dataset.row_count == 2
