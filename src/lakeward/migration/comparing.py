"""Compares all rows of a dataset's two arms at one version: digests side by side, and what was found is kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakeward.control.tree import DatasetRecord
from lakeward.errors import ArmNotCurrent, ParityMismatch
from lakeward.migration.stage import Rooms


@dataclass(frozen=True)
class Compared:
    """Two arms that are equal at a version.

    Args:
        version: which one.
        rows: how many rows each has.
        digest: of both, as text.
    """

    version: int
    rows: int
    digest: str


def compare(rooms: Rooms, dataset: DatasetRecord, other: str) -> Compared:
    """Compare the arm that serves a dataset with another one, at the newest version that the other one holds.

    Args:
        rooms: the parts of the workspace.
        dataset: which one.
        other: the arm that does not serve it.

    Raises:
        ArmNotCurrent: the arms hold no version in common.
        ParityMismatch: they differ; that is kept, and blocks a switch.
    """
    arms = (dataset.route.primary_arm, other)
    version = rooms.replication.lag(dataset, other).holds
    if version is None:
        raise ArmNotCurrent(
            f"the {other} arm holds no version of dataset {dataset.name}",
            next_step=f"lakeward flip start {dataset.name}",
            dataset=dataset.name,
            arm=other,
        )
    with ThreadPoolExecutor(len(arms), thread_name_prefix="lakeward-verify") as pool:
        running = {arm: pool.submit(rooms.storage.digest, dataset, arm=arm, version=version) for arm in arms}
        digests = {arm: each.result() for arm, each in running.items()}
    first, second = digests.values()
    rooms.parity.record(
        dataset.id,
        version,
        "full",
        equal=first == second,
        rows=first.count,
        details={"digests": {arm: str(digest) for arm, digest in digests.items()}},
    )
    if first != second:
        raise ParityMismatch(
            f"dataset {dataset.name}, version {version}: the arms differ: "
            + ", ".join(f"{arm} {digest}" for arm, digest in digests.items()),
            safe="nothing was changed; readers are served by the primary arm as before",
            next_step=f"lakeward flip cancel {dataset.name} removes the copy; then start anew",
            dataset=dataset.name,
            version=version,
            digests={arm: str(digest) for arm, digest in digests.items()},
        )
    return Compared(version, first.count, str(first))
