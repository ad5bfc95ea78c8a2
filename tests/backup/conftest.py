"""A workspace with datasets on both arms, and a backup of it that was made while there was more to come."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import lakeward
from lakeward.wiring.backup import create_backup
from support.backup_scene import NAMES, Kept, digests, fill

_numbers = count(1)


@pytest.fixture(scope="module")
def kept(short_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """Backed up, and written to since."""
    home = short_root / f"kept{next(_numbers)}"
    with lakeward.open(home) as workspace:
        fill(workspace)
        before = digests(workspace)
        backup = create_backup(workspace, tmp_path_factory.mktemp("backups") / "lakeward.backup")
        for name in NAMES[:2]:
            workspace.dataset(name).write([{"id": 1000, "note": "after the backup"}])
        yield Kept(workspace, home, backup, before)


@pytest.fixture
def new_home(short_root: Path) -> Path:
    """A directory that is not there yet."""
    return short_root / f"new{next(_numbers)}"
