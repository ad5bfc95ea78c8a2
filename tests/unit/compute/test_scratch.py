"""Directories for what queries spill."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lakeward.compute.scratch import Scratch, remove_abandoned
from lakeward.errors import HomeNotWritable


def test_it_is_private_and_removed_with_what_is_in_it(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "new" / "scratch")
    assert stat.S_IMODE(scratch.path.stat().st_mode) == 0o700
    (scratch.path / "spilled").write_text("rows")
    scratch.close()
    scratch.close()
    assert list((tmp_path / "new" / "scratch").iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, lakeward.compute.scratch as s\n"
        f"scratch = s.Scratch(pathlib.Path({str(tmp_path)!r}))\n"
        "(scratch.path / 'spilled').write_text('rows')\n"
        "print(scratch.path, flush=True)\n"
        "sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()
    )
    assert other.stdout is not None
    left = Path(other.stdout.readline().strip())
    mine = Scratch(tmp_path)
    assert remove_abandoned(tmp_path) == []
    assert left.is_dir()
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert remove_abandoned(tmp_path) == [left]
    assert sorted(tmp_path.iterdir()) == [mine.path]
    mine.close()


def test_a_foreign_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "compute-mine").mkdir()
    assert remove_abandoned(tmp_path) == []
    assert remove_abandoned(tmp_path / "missing") == []
    assert (tmp_path / "compute-mine").is_dir()


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeNotWritable, match="file/scratch"):
        Scratch(tmp_path / "file" / "scratch")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
