"""What maintenance asks of an arm, and what it finds: files to rewrite, and things that nobody needs any more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakeward.control.retention import HeldVersion
from lakeward.storage.table import TableRef


@dataclass(frozen=True)
class TidyTask:
    """One dataset to be tidied on one arm.

    Args:
        table: the dataset.
        held: every version that any arm has something of.
        head_version: the newest committed version when the task was made.
        diverged: whether another engine moved the table: then only people know what is needed.
        grace_seconds: what is younger, or was needed so recently, stays: somebody may be using it.
        open_seconds: since when the dataset's open transaction has been open; None: there is none.
        dry_run: find, and change nothing.
        commits: whether the arm may write to itself for it; else only what nothing names is removed.
    """

    table: TableRef
    held: Sequence[HeldVersion]
    head_version: int
    diverged: bool
    grace_seconds: float
    open_seconds: float | None
    dry_run: bool
    commits: bool = True

    def of_arm(self, arm: str) -> list[HeldVersion]:
        """Return what one arm has, by version."""
        return [each for each in self.held if each.arm == arm]


@dataclass(frozen=True)
class PurgeTask:
    """One dropped dataset of which an arm is to keep nothing.

    Args:
        table: the dataset.
        held: every version that the arm has something of; none is readable any more.
        head_version: the newest committed version.
        others: all other datasets that the arm has something of, dropped ones too.
        dry_run: find, and change nothing.
        note: is told what stays, and why.
    """

    table: TableRef
    held: Sequence[HeldVersion]
    head_version: int
    others: Sequence[TableRef]
    dry_run: bool
    note: Callable[[str], object]

    def drained(self) -> TidyTask:
        """Return it as a dataset to be tidied, of which no version is needed."""
        held = [replace(each, expired_seconds=math.inf) for each in self.held]
        return TidyTask(self.table, held, self.head_version, False, 0.0, None, self.dry_run)


@dataclass(frozen=True)
class Leftover:
    """Something that is not needed any more.

    Args:
        dataset: whose; empty for what belongs to none.
        kind: `version`, `snapshot`, `data file`, `manifest`, `metadata file`, `rows`, `table`, `comparison`,
            `model` or `scratch`.
        what: which one: a path, an identifier, a range of versions.
        bytes: its size on disk, where it has one of its own.
        count: how many things it stands for; more than 1 for rows and comparisons only.
    """

    dataset: str
    kind: str
    what: str
    bytes: int = 0
    count: int = 1

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return dict(vars(self))


@dataclass(frozen=True)
class Rewriting:
    """Data files that are rewritten, or that are to be.

    Args:
        dataset: whose.
        files: how many data files go.
        bytes: the size on disk of what goes, delete files included.
        delete_files: how many delete files go, because they apply to no data file any more.
        files_after: how many data files come for them.
        bytes_after: their size; None: they are not written yet.
        version: the version that did it; None: it is not done yet.
        actions: what is done, each in words.
    """

    dataset: str
    files: int
    bytes: int
    delete_files: int
    files_after: int
    bytes_after: int | None = None
    version: int | None = None
    actions: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "actions": list(self.actions)}


@dataclass(frozen=True)
class Gathered:
    """How many files a version of a dataset consists of."""

    data_files: int
    delete_files: int
