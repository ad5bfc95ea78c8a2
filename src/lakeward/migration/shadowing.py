"""Lets the readers of one dataset ask both arms for a while: their flags are set, and put back, also after a kill.

What was there before is written down in the flip's log first. So whoever comes next puts it back, if the process that
set the flags could not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeward.control.flags.registry import PRIMARY, READER, READERS, SHADOW
from lakeward.control.flips import FlipEvent
from lakeward.migration.stage import FlipContext

STAGE = "canary"


def own_flags(context: FlipContext) -> dict[str, str]:
    """Return what is set for the dataset alone, by reader."""
    flags = context.rooms.flags.all()
    return {each.name: each.value for each in flags if each.kind == READER and each.dataset_id == context.dataset.id}


def to_be_shadowed(context: FlipContext) -> dict[str, str | None]:
    """Return the readers whose flag has to be set, with the one that the dataset has; none, if one shadows already."""
    own = own_flags(context)
    every = {each.name: each.value for each in context.rooms.flags.all() if each.kind == READER and not each.dataset_id}
    now = {name: own.get(name) or every.get(name, reader.default) for name, reader in READERS.items()}
    if SHADOW in now.values():
        return {}
    return {name: own.get(name) for name, prefers in now.items() if prefers == PRIMARY}


def shadow(context: FlipContext, readers: Mapping[str, str | None]) -> None:
    """Let readers of the dataset ask both arms. Each still gets the answer of the one that serves."""
    _put(context, dict.fromkeys(readers, SHADOW))


def put_back(context: FlipContext) -> list[str]:
    """Put the flags back as they were before; what somebody else has changed since is left. Returns what was done."""
    left = still_set(context)
    _put(context, left)
    return [f"put the flag of reader {name} back" for name in left]


def still_set(context: FlipContext) -> dict[str, str | None]:
    """Return the readers whose flags this flip has set, and has not put back, with what was there before."""
    before = shadowed_by(newest_watch(context))
    own = own_flags(context)
    return {name: value for name, value in before.items() if own.get(name) == SHADOW}


def newest_watch(context: FlipContext) -> FlipEvent | None:
    """Return the beginning of the newest watch of this flip; None: there was none."""
    events = [each for each in context.rooms.flips.events(context.flip) if each.stage == STAGE]
    begun = [each for each in events if each.event == "started" and "watch" in each.details]
    return begun[-1] if begun else None


def shadowed_by(watch: FlipEvent | None) -> dict[str, str | None]:
    """Return the readers whose flags a watch sets, with what was there before."""
    found: dict[str, Any] = dict(watch.details.get("readers") or {}) if watch is not None else {}
    return found


def _put(context: FlipContext, values: Mapping[str, str | None]) -> None:
    dataset = context.dataset
    for name, value in values.items():
        context.rooms.flags.put(READER, name, value, actor="flip.canary", dataset=(dataset.id, dataset.name))
