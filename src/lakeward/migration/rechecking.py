"""The full comparison of every mirrored dataset, once in a while: what lets a mirror be trusted for months."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakeward.control.tree import DatasetRecord
from lakeward.errors import LakewardError, ParityMismatch, UsageError
from lakeward.migration.comparing import compare
from lakeward.migration.stage import Rooms


@dataclass(frozen=True)
class Rechecked:
    """What became of one dataset.

    Args:
        dataset: its name.
        outcome: `equal`, `differs`, `failed` or, compared recently, `recent`.
        version, rows: what was compared; None where nothing was.
        error: what is wrong.
    """

    dataset: str
    outcome: str
    version: int | None = None
    rows: int | None = None
    error: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return dict(vars(self))


def recheck(
    rooms: Rooms,
    datasets: Sequence[DatasetRecord],
    older_than: float,
    tell: Callable[[str], None] = lambda _dataset: None,
) -> list[Rechecked]:
    """Compare all rows of both arms of the datasets whose last such comparison is too old. One after the other.

    A difference or a failure of one keeps no other from being looked at. What was found is kept.

    Args:
        rooms: the parts of the workspace.
        datasets: which; none: all that are mirrored.
        older_than: seconds; 0: all of them, however recently they were compared.
        tell: is told which dataset is compared now.

    Raises:
        UsageError: one of those that were named is not mirrored.
    """
    for dataset in datasets:
        if dataset.route.mirror_arm is None:
            raise UsageError(
                f"dataset {dataset.name} is not mirrored: there is nothing to compare with",
                safe="nothing was changed",
                next_step=f"lakeward flip start {dataset.name} --until mirror",
                dataset=dataset.name,
            )
    mirrored = [each for each in datasets or rooms.tree.datasets() if each.route.mirror_arm is not None]
    return [_one(rooms, each, older_than, tell) for each in mirrored if each.head_version]


def _one(rooms: Rooms, dataset: DatasetRecord, older_than: float, tell: Callable[[str], None]) -> Rechecked:
    age = rooms.parity.seconds_since(dataset.id, "full")
    if age is not None and age < older_than:
        return Rechecked(dataset.name, "recent")
    tell(dataset.name)
    assert dataset.route.mirror_arm is not None, "only those are looked at"
    try:
        found = compare(rooms, dataset, dataset.route.mirror_arm)
    except ParityMismatch as error:
        return Rechecked(dataset.name, "differs", error=error.message)
    except LakewardError as error:
        return Rechecked(dataset.name, "failed", error=error.message)
    return Rechecked(dataset.name, "equal", found.version, found.rows)
