"""Locks that end with their process, and that a fork does not keep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakeward.control.embedded.locks import FileLock


def test_locks_of_one_process_on_one_file_are_independent(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "l"), FileLock(tmp_path / "l")
    first.shared()
    second.shared()
    assert not first.try_exclusive()
    second.close()
    second.close()
    assert first.try_exclusive()
    first.close()


def test_a_fork_closes_the_lock_and_leaves_the_parents_alone(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "l")
    assert lock.try_exclusive()
    hold, release = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(release)
        os.read(hold, 1)
        os._exit(0 if lock.closed else 1)
    os.close(hold)
    other = FileLock(tmp_path / "l")
    assert not other.exclusive_within(0.05), "the parent's lock holds"
    lock.close()
    assert other.try_exclusive(), "and ends although the child lives"
    os.close(release)
    assert os.waitpid(child, 0)[1] == 0
    other.close()


def test_a_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "l")
    assert lock.in_place()
    (tmp_path / "l").unlink()
    assert not lock.in_place()
    (tmp_path / "l").touch()
    assert not lock.in_place()
    lock.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="l"):
        FileLock(tmp_path / "l")
    assert not (tmp_path / "target").exists()
