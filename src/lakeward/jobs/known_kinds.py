"""The kinds of jobs that there are: one file each in `kinds/`, found by discovery."""

from __future__ import annotations

from typing import Any

from lakeward.discovery import discover
from lakeward.errors import UnknownObject
from lakeward.jobs import kinds
from lakeward.jobs.kind import JobKind


def job_kinds() -> dict[str, JobKind[Any]]:
    """Return every kind by its name."""
    return {name: kind() for name, kind in discover(kinds, JobKind).items()}


def kind_named(name: str) -> JobKind[Any]:
    """Return a kind.

    Raises:
        UnknownObject: there is none of that name, with the nearest.
    """
    known = job_kinds()
    if name not in known:
        raise UnknownObject.among("kind of job", name, known, kind=name)
    return known[name]
