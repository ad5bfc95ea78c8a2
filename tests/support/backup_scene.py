"""What a backup is made of: datasets on both arms, and their checksums when it was made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import lakeward
from lakeward.wiring.backup import Backup

COLUMNS = {"id": "long", "note": "string"}
NAMES = ('main.kept."a.b/ü"', "main.kept.iceberg", "main.kept.both", "main.kept.empty")


@dataclass(frozen=True)
class Kept:
    """What was backed up, and the workspace as it went on.

    Args:
        workspace: open.
        home: its directory.
        backup: of it.
        digests: of every dataset, by name and arm, when the backup was made.
    """

    workspace: lakeward.Workspace
    home: Path
    backup: Backup
    digests: dict[tuple[str, str], str]


def digests(workspace: lakeward.Workspace) -> dict[tuple[str, str], str]:
    """Return the checksum of every dataset, on each arm that holds it."""
    return {
        (each.name, arm): str(workspace.dataset(each.name).digest(arm))
        for each in workspace.status()
        for arm in each.holders
    }


def fill(workspace: lakeward.Workspace) -> None:
    """Make the datasets, each on its arm, one on both."""
    plain, iceberg, both, _ = (
        workspace.create_dataset(name, COLUMNS, ["id"], arm="iceberg" if name.endswith("iceberg") else "postgres")
        for name in NAMES
    )
    rows = [{"id": number, "note": f"'{number}'\\\t\n"} for number in range(200)]
    for each in (plain, iceberg, both):
        each.write(rows)
        each.write([{"id": number} for number in range(50)], mode="delete")
    workspace.flip(both.name).run(to="iceberg")
