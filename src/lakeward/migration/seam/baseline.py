"""The ratchet: how many accesses each file may have, in a file that is committed, and that only falls."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lakeward.errors import UsageError
from lakeward.migration.seam.scanning import Survey
from lakeward.migration.seam.tables import DEFAULT_TABLES

FILE_NAME = "lint-seam.json"
"""What a baseline is called if nobody says otherwise."""


class _Document(BaseModel):
    """The baseline as it is written."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tables: list[str]
    allow: list[str]
    files: dict[str, int] = Field(default_factory=dict)


@dataclass(frozen=True)
class Baseline:
    """What is allowed.

    Args:
        tables: what was counted.
        allow: globs of what may access them as it likes; the storage layer.
        counts: accesses by file, named from the baseline's folder.
    """

    tables: tuple[str, ...]
    allow: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Baseline | None:
        """Return what a file says; None if there is none.

        Raises:
            UsageError: it can't be read, or is no baseline.
        """
        try:
            document = _Document.model_validate_json(file.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _refused(file, error.strerror or type(error).__name__) from error
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise _refused(file, f"{place}: {first['msg']}" if place else first["msg"]) from error
        wrong = next((name for name, count in document.files.items() if count < 1), None)
        if wrong is not None:
            raise _refused(file, f"files.{wrong}: a count is 1 or more")
        return cls(tuple(sorted(set(document.tables))), tuple(sorted(set(document.allow))), document.files)

    def write(self, file: Path) -> None:
        """Write it: one line per file, in order, so that a diff tells what became better or worse."""
        document = _Document(tables=list(self.tables), allow=list(self.allow), files=dict(sorted(self.counts.items())))
        text = json.dumps(document.model_dump(), indent=2, ensure_ascii=False) + "\n"
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(file)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise UsageError(
                f"the baseline {file} can't be written: {error.strerror}", safe="the old one is unchanged"
            ) from error

    def after(self, survey: Survey) -> Baseline:
        """Return the baseline for what a survey found; what it did not look at stays."""
        below = {file for file in self.counts if _is_below(file, survey.top)}
        kept = {file: count for file, count in self.counts.items() if file not in below}
        return Baseline(self.tables, self.allow, kept | _counts(survey, self))


@dataclass(frozen=True)
class Change:
    """A file whose count is not what the baseline says. `gone`: the file is no longer there."""

    file: str
    count: int
    allowed: int
    gone: bool = False

    @property
    def name(self) -> str:
        """`new`, `rose`, `fell` or `gone`."""
        if self.count > self.allowed:
            return "rose" if self.allowed else "new"
        return "gone" if self.gone else "fell"

    def to_json(self) -> dict[str, object]:
        """Return the fields, and what the change is called."""
        return {"file": self.file, "change": self.name, "count": self.count, "allowed": self.allowed}


@dataclass(frozen=True)
class Verdict:
    """What became of the counts, by file."""

    changes: tuple[Change, ...]

    @property
    def rises(self) -> list[Change]:
        """The files that have more than they may."""
        return [change for change in self.changes if change.count > change.allowed]

    @property
    def falls(self) -> list[Change]:
        """The files that have less: the baseline can be lowered, so that it stays so."""
        return [change for change in self.changes if change.count < change.allowed]


def judge(survey: Survey, baseline: Baseline, root: Path) -> Verdict:
    """Compare what was found with what is allowed.

    Args:
        survey: of files named from `root`.
        baseline: entries outside of what was surveyed are left alone.
        root: the baseline's folder.
    """
    counts = _counts(survey, baseline)
    expected = {file: count for file, count in baseline.counts.items() if _is_below(file, survey.top)}
    return Verdict(
        tuple(
            Change(file, counts.get(file, 0), expected.get(file, 0), not (root / file).exists())
            for file in sorted(counts.keys() | expected.keys())
            if counts.get(file, 0) != expected.get(file, 0)
        )
    )


def settled(known: Baseline | None, tables: Sequence[str], allow: Sequence[str], update: bool, file: Path) -> Baseline:
    """Return the baseline to judge by: its own tables and globs, unless others are given together with `update`.

    Raises:
        UsageError: others are given for a check. They would hide accesses without a line in any diff.
    """
    if known is None:
        return Baseline(tuple(sorted(set(tables))) or DEFAULT_TABLES, tuple(sorted(set(allow))))
    asked = Baseline(tuple(sorted(set(tables))) or known.tables, tuple(sorted(set(allow))) or known.allow, known.counts)
    for what, wanted, written in (("tables", asked.tables, known.tables), ("globs", asked.allow, known.allow)):
        if wanted != written and not update:
            raise UsageError(
                f"the baseline {file} is for the {what} {_listed(written)}, not for {_listed(wanted)}",
                next_step="leave the option out, change the baseline with --update, or name another: --baseline FILE",
                baseline=str(file),
            )
    return asked


def _counts(survey: Survey, baseline: Baseline) -> dict[str, int]:
    """Return what was found; of what could not be read, what the baseline says of it."""
    unread = [warned.file for warned in survey.warnings if warned.unread]
    unknown = {file: n for file, n in baseline.counts.items() if any(_is_below(file, each) for each in unread)}
    return unknown | survey.counts


def _is_below(file: str, top: str) -> bool:
    return PurePosixPath(file).is_relative_to(PurePosixPath(top)) or top == "."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "(none)"


def _refused(file: Path, why: str) -> UsageError:
    return UsageError(
        f"{file} is no baseline: {' '.join(why.split())}",
        safe="it is unchanged",
        next_step="mend it, take it from the last commit, or move it away and write a new one with --update",
        baseline=str(file),
    )
