"""Backs up a workspace's database into one file, and brings it back: the control plane, and the Postgres arm's rows.

Files of Iceberg tables stay where they are: the backup says which snapshots it refers to, and a restore looks whether
they are there. What was written after the backup is not known to a restored workspace. Where the catalog is in the
same database, it comes back with it, and files of later snapshots are leftovers, which `lakeward maintain` removes. A
catalog elsewhere has moved on: `main` of its tables is at a snapshot that the restored ledger does not know, which is
found before the next write, and ended like any other engine's commit, by `ledger adopt` or `ledger restore`.
"""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lakeward
from lakeward.control.dump import CATALOG, CONTROL, Dumped, check_empty, dump, restore
from lakeward.control.schema import HEAD, migrate
from lakeward.errors import UsageError
from lakeward.storage.table import table_ref
from lakeward.wiring.opening import open_workspace, reach_database
from lakeward.wiring.places import resolve_settings
from lakeward.wiring.workspace import Workspace

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Backup:
    """A backup.

    Args:
        file: where it is.
        at: when it was made, by the database's clock.
        revision: the newest migration of its tables.
        made_by: the version of Lakeward.
        warehouse: where Iceberg tables were made then.
        datasets: their versions, rows, checksums and snapshots, by name.
    """

    file: str
    at: str
    revision: str
    made_by: str
    warehouse: str
    datasets: Mapping[str, Mapping[str, Any]]

    @property
    def snapshots(self) -> int:
        """To how many Iceberg snapshots it refers."""
        return sum(len(each["snapshots"]) for each in self.datasets.values())

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "datasets": dict(self.datasets), "bytes": os.path.getsize(self.file)}


@dataclass(frozen=True)
class RestoredBackup:
    """What a restore brought.

    Args:
        backup: from which.
        missing: why versions of datasets can't be read, by dataset and version: their files are not there.
    """

    backup: Backup
    missing: Mapping[str, Mapping[int, str]]

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {"backup": self.backup.to_json(), "missing": {name: dict(each) for name, each in self.missing.items()}}


def create_backup(workspace: Workspace, file: Path, *, force: bool = False) -> Backup:
    """Write a backup of the workspace as it is at one instant, while others go on writing.

    The file is there whole or not at all, and readable by its owner only: it has rows in it.

    Args:
        workspace: which.
        file: where to.
        force: replace a file that is there.

    Raises:
        UsageError: the file is there, or its folder is not.
        ControlError: the database could not be dumped.
    """
    if file.exists() and not force:
        raise UsageError(f"{file} is there already", safe="nothing was written", next_step="choose another, or --force")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {file.absolute().parent}", safe="nothing was written")
    # Beside the file: a rename within one folder is atomic.
    with tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=file.absolute().parent) as scratch:
        folder = Path(scratch)
        dumped = dump(workspace.database, folder)
        warehouse = workspace.settings.values.warehouse or str(Path(workspace.settings.values.home or "", "warehouse"))
        (folder / MANIFEST).write_text(json.dumps(_manifest(dumped, warehouse)))
        packed = folder / "packed"
        with tarfile.open(packed, "w") as archive:
            for each in (folder / MANIFEST, *dumped.files):
                archive.add(each, each.name)
        packed.chmod(0o600)
        descriptor = os.open(packed, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        packed.replace(file)
    return read_backup(file)


def read_backup(file: Path) -> Backup:
    """Return what a backup says of itself.

    Raises:
        UsageError: it is none, or of a newer Lakeward.
    """
    try:
        with tarfile.open(file, "r:") as archive:
            found = archive.extractfile(MANIFEST)
            assert found is not None, "tarfile returns None for folders only"
            manifest = json.load(found)
    except (OSError, tarfile.TarError, KeyError, ValueError) as error:
        raise UsageError(f"{file} is no backup of a workspace: {error}", safe="nothing was changed") from None
    if manifest.get("format") != FORMAT or manifest["revision"] > HEAD:
        raise UsageError(
            f"{file} was made by lakeward {manifest.get('made_by')}, which is newer (its tables are at "
            f"{manifest.get('revision')}, this one knows {HEAD})",
            safe="nothing was changed",
            next_step="upgrade lakeward",
        )
    told = {name: manifest[name] for name in ("at", "revision", "made_by", "warehouse", "datasets")}
    return Backup(file=str(file), **told)


def restore_backup(
    flags: Mapping[str, object],
    file: Path,
    settings_file: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> RestoredBackup:
    """Bring a backup into a workspace that has no datasets, or is not there: all of it, or nothing.

    Tables of an older Lakeward are brought to the newest form. Writers that were at work when the backup was made are
    taken for dead, and what they had begun is removed.

    Args:
        flags: as `resolve_settings` takes them.
        file: the backup.
        settings_file: a `lakeward.toml` to read besides the one in the home.
        say: is told what is done.

    Raises:
        UsageError: it is no backup, or there are datasets in the workspace.
        ControlError: the database refused it, and is as it was.
    """
    backup = read_backup(file)
    with ExitStack() as undo:
        database = reach_database(resolve_settings(flags, settings_file), undo)
        check_empty(database)
        with _unpacked(file) as files:
            say(f"restoring {len(backup.datasets)} datasets as they were at {backup.at}")
            restore(database, files)
        migrate(database)
    say(f"looking for {backup.snapshots} snapshots of Iceberg tables")
    with open_workspace(**flags, settings_file=settings_file, recover=True) as workspace:  # type: ignore[arg-type]
        receiver = workspace.storage.routing.arm("iceberg").receiver()
        records = {each.name: each.record for each in workspace.datasets()}
        missing = {}
        for name, told in backup.datasets.items():
            snapshots = {int(version): int(snapshot) for version, snapshot in told["snapshots"].items()}
            found = receiver.missing(table_ref(records[name]), snapshots) if snapshots and name in records else {}
            if found:
                missing[name] = found
    return RestoredBackup(backup, missing)


@contextmanager
def _unpacked(file: Path) -> Iterator[list[Path]]:
    with tempfile.TemporaryDirectory(prefix="lakeward-restore-") as scratch, tarfile.open(file, "r:") as archive:
        names = [name for name in (CATALOG, CONTROL) if name in archive.getnames()]
        for name in names:
            archive.extract(name, scratch, filter="data")
        yield [Path(scratch, name) for name in names]


def _manifest(dumped: Dumped, warehouse: str) -> dict[str, object]:
    datasets = {
        head.name: {
            "uid": head.uid,
            "version": head.version,
            "rows": head.rows,
            "digest": head.digest,
            "snapshots": head.snapshots,
        }
        for head in dumped.heads
    }
    return {
        "format": FORMAT,
        "made_by": lakeward.__version__,
        "at": dumped.at.isoformat(),
        "revision": dumped.revision,
        "server": dumped.server,
        "warehouse": warehouse,
        "datasets": datasets,
    }
