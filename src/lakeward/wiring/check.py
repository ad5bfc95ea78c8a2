"""One finding of `lakeward doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `ok` is False if the product can't work like this."""

    name: str
    ok: bool
    detail: str
    next_step: str | None = None
