"""A backup that is restored is the workspace as it was, equal on both arms; or nothing of it is there at all."""

from __future__ import annotations

import shutil
import signal
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import sqlalchemy

import lakeward
from lakeward.control.dump import CONTROL
from lakeward.errors import ControlError, UnknownObject, UsageError
from lakeward.wiring.backup import create_backup, read_backup, restore_backup
from support.backup_scene import NAMES, Kept, digests
from support.commands import environment, process

KILLED = """
import os, signal, sys
from lakeward.control import dump
from lakeward.wiring.backup import restore_backup

def send(lines, to, *, older):
    text = lines.read()
    to.write(text[: len(text) // 2])
    to.flush()
    os.kill(os.getpid(), signal.SIGKILL)

dump._send = send
restore_backup({"home": sys.argv[1]}, sys.argv[2])
"""


def test_it_says_what_it_has_and_only_its_owner_reads_it(kept: Kept) -> None:
    file = Path(kept.backup.file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = read_backup(file)
    assert set(found.datasets) == set(NAMES)
    assert {name: each["version"] for name, each in found.datasets.items()} == dict(
        zip(NAMES, (2, 2, 2, 0), strict=True)
    )
    assert set(found.datasets["main.kept.iceberg"]["snapshots"]) == {"1", "2"}
    with pytest.raises(UsageError, match="is there already"):
        create_backup(kept.workspace, file)
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_restored_workspace_is_as_it_was_and_goes_on(kept: Kept, new_home: Path) -> None:
    restored = restore_backup({"home": new_home}, Path(kept.backup.file))
    assert restored.missing == {}
    with lakeward.open(new_home) as workspace:
        assert digests(workspace) == kept.digests
        assert [each.version for each in workspace.dataset(NAMES[0]).history()] == [2, 1]
        # What was written after the backup is not known; the next write takes its version anew.
        for name in NAMES[:3]:
            written = workspace.dataset(name).write([{"id": 2000, "note": "after the restore"}])
            assert (written.version > 2, written.row_count) == (True, 151)
        assert workspace.dataset(NAMES[2]).digest("postgres") == workspace.dataset(NAMES[2]).digest("iceberg")
        with pytest.raises(UsageError, match="has 4 datasets already"):
            restore_backup({"home": new_home}, Path(kept.backup.file))
    # Neither disturbs the other: the first goes on with what it had.
    assert kept.workspace.dataset(NAMES[1]).to_arrow(where="id >= 1000")["note"].to_pylist() == ["after the backup"]


def test_killed_in_the_middle_nothing_is_there_and_it_can_be_repeated(kept: Kept, new_home: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(new_home), kept.backup.file]
    assert subprocess.run(command, env=environment(), check=False).returncode == -signal.SIGKILL
    with lakeward.open(new_home) as workspace:
        assert workspace.datasets() == []
        tables = workspace.database.fetch(sqlalchemy.text("SELECT to_regclass('iceberg_tables') IS NULL AS none"))
        assert tables[0]["none"] is True
    restore_backup({"home": new_home}, Path(kept.backup.file))
    with lakeward.open(new_home) as workspace:
        assert digests(workspace) == kept.digests


def test_a_damaged_file_changes_nothing(kept: Kept, new_home: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    with tarfile.open(kept.backup.file) as whole, tarfile.open(damaged, "w") as archive:
        whole.extractall(tmp_path, filter="data")
        control = tmp_path / CONTROL
        control.write_bytes(control.read_bytes()[:-2000])
        for name in whole.getnames():
            archive.add(tmp_path / name, name)
    with pytest.raises(ControlError, match="is damaged"):
        restore_backup({"home": new_home}, damaged)
    with lakeward.open(new_home) as workspace:
        assert workspace.datasets() == []
    for content in (b"", b"no backup"):
        damaged.write_bytes(content)
        with pytest.raises(UsageError, match="is no backup"):
            restore_backup({"home": new_home}, damaged)


def test_what_is_missing_is_named_and_the_rest_works(kept: Kept, new_home: Path, tmp_path: Path) -> None:
    warehouse = kept.home / "warehouse"
    table = next(path for path in warehouse.rglob("iceberg*") if (path / "data").is_dir())
    elsewhere = tmp_path / "elsewhere"
    shutil.move(table / "data", elsewhere)
    try:
        command = process("backup", "restore", kept.backup.file, "--home", new_home)
        out, err = command.communicate()
    finally:
        shutil.move(elsewhere, table / "data")
    assert command.returncode == 1, err
    assert "MISSING main.kept.iceberg version 2: the file" in out and "is gone" in out
    with lakeward.open(new_home) as workspace:
        assert workspace.dataset(NAMES[0]).to_arrow().num_rows == 150
        with pytest.raises(UnknownObject):
            workspace.dataset("main.kept.nothing")
