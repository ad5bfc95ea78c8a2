"""Which data files a compaction rewrites: a function of what the manifests say.

Files are merged with neighbours by version, so that reading what is new since a version still leaves out the others;
each bin becomes one file. Small files are merged in tiers, by their number of rows: so many of one tier make one of the
next, so that a row is rewritten once per tier, and n appends cost O(n log n) in all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakeward.storage.settings import CompactionPolicy

PATIENCE = 8
"""With so many times the delete files that the policy names a file is rewritten, however few rows they delete."""


@dataclass(frozen=True)
class DataFileFacts:
    """What the choice rests on.

    Args:
        path: the data file.
        rows: in it, deleted ones included.
        bytes: its size on disk.
        first, last: the bounds of its rows' `__version`.
        delete_files: how many apply to it.
        deleted: how many rows those delete.
        group: only files of one group can be merged: those of one partition.
    """

    path: str
    rows: int
    bytes: int
    first: int = 0
    last: int = 0
    delete_files: int = 0
    deleted: int = 0
    group: tuple[int, str] = (0, "")

    @property
    def live(self) -> int:
        """How many rows it has left."""
        return max(self.rows - self.deleted, 0)


Bin = tuple[DataFileFacts, ...]
"""Files that become one, in the order of their versions; or one that is written anew without its deleted rows."""


def choose(files: Iterable[DataFileFacts], policy: CompactionPolicy) -> list[Bin]:
    """Return what is to be rewritten; nothing, if the files are as the policy wants them."""
    ordered = sorted(files, key=lambda file: (file.group, file.last, file.first, file.path))
    groups = itertools.groupby(ordered, key=lambda file: file.group)
    return [chosen for _, members in groups for chosen in _choose_in_group(list(members), policy)]


def _choose_in_group(files: Sequence[DataFileFacts], policy: CompactionPolicy) -> list[Bin]:
    small = [file for file in files if file.bytes < policy.small_bytes]
    merged = [run for run in _tiered(small, policy) if len(run) > 1] if len(small) >= policy.small_files else []
    taken = {file.path for run in merged for file in run}
    worn = [(file,) for file in files if file.path not in taken and _is_worn(file, policy)]
    taken |= {file.path for (file,) in worn}
    others = [(file,) for file in small if file.path not in taken]
    # Where much is rewritten anyway, small files ride along, if that doubles the work at most.
    if worn and live_rows_of(_joined(others)) <= live_rows_of(_joined([*merged, *worn])):
        merged += [run for run in _packed(others, policy.target_bytes) if len(run) > 1 or run[0].delete_files]
    return [*merged, *worn]


def _is_worn(file: DataFileFacts, policy: CompactionPolicy) -> bool:
    if file.deleted > policy.deleted_share * file.rows:
        return True
    if file.delete_files < policy.delete_files:
        return False
    many = file.delete_files >= PATIENCE * policy.delete_files
    return many or file.deleted >= policy.worthwhile_share * file.rows


def _tiered(small: Sequence[DataFileFacts], policy: CompactionPolicy) -> list[Bin]:
    """Merge neighbours, tier by tier: where so many of one tier stand together, with smaller ones between them."""
    runs: list[Bin] = [(file,) for file in small]
    large: list[Bin] = []
    level = 0
    while runs and level <= max(_tier(run, policy.tier) for run in runs):
        merged: list[Bin] = []
        for mergeable, found in itertools.groupby(runs, key=lambda run: _tier(run, policy.tier) <= level):
            together = list(found)
            enough = sum(_tier(run, policy.tier) == level for run in together) >= policy.tier
            merged += _packed(together, policy.target_bytes) if mergeable and enough else together
        # What is not small any more stands in nobody's way.
        large += [run for run in merged if bytes_of(run) >= policy.small_bytes]
        runs = [run for run in merged if bytes_of(run) < policy.small_bytes]
        level += 1
    return [*large, *runs]


def _packed(runs: Iterable[Bin], target_bytes: int) -> list[Bin]:
    """Join neighbours as long as they fit into one file."""
    packed: list[Bin] = []
    for run in runs:
        if packed and bytes_of(packed[-1]) + bytes_of(run) <= target_bytes:
            packed[-1] += run
        else:
            packed.append(run)
    return packed


def _tier(run: Bin, base: int) -> int:
    tier, rows = 0, live_rows_of(run)
    while rows >= base:
        tier, rows = tier + 1, rows // base
    return tier


def _joined(runs: Iterable[Bin]) -> Bin:
    return tuple(itertools.chain.from_iterable(runs))


def live_rows_of(run: Bin) -> int:
    """Return how many rows the files of a bin have left."""
    return sum(file.live for file in run)


def bytes_of(run: Bin) -> int:
    """Return the size on disk of the files of a bin."""
    return sum(file.bytes for file in run)
