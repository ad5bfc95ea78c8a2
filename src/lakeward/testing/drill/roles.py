"""What the processes of the drill of flips do until they are told to stop: write, read, or work on a flip.

Writers and readers keep journals of what they were told and what they saw, one JSON line each, with the time of the
machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakeward.errors import LakewardError, UsageError
from lakeward.migration.directions import direction_to
from lakeward.migration.flip import Flip
from lakeward.migration.options import Options
from lakeward.storage.requests import ReadRequest
from lakeward.testing.drill.model import Rooms
from lakeward.testing.drill.writes import Chooser, Write
from lakeward.testing.drill.writing import write

MODES = {"append": 4, "upsert": 4, "delete": 2}
"""How often a writer chooses each mode."""

HOT_IDS = range(-12, 0)
"""Keys that every writer changes; all others are its own."""

SINCE_IN = 0.4
"""The share of reads that ask for what came since an earlier version."""

PAUSE_SECONDS = 0.05
"""Between two reads of a process, so that readers do not take all processors from the writers."""

BACK = direction_to("postgres")

Stopped = Callable[[float], bool]
"""Waits so many seconds at most for being told to stop, and says whether that has come."""

Placed = tuple[int, int, str]
"""`__row_index`, id and note of a row."""


def play(rooms: Rooms, command: Mapping[str, Any], stopped: Stopped) -> dict[str, object]:
    """Play the role that a command names, until it is stopped or done; return what is to be told of it."""
    return ROLES[command["role"]](rooms, command, stopped)


# Writing -------------------------------------------------------------------------------------------------------------


def _write(rooms: Rooms, command: Mapping[str, Any], stopped: Stopped) -> dict[str, object]:
    """Write one thing after the other; the numbers of writes and new rows are this process's own."""
    generator = random.Random(command["seed"])
    chooser = Chooser(count(command["first"], command["step"]), HOT_IDS)
    name = command["dataset"]
    done = 0
    with _journal(command) as note:
        while not stopped(0.0):
            (mode,) = generator.choices(list(MODES), list(MODES.values()))
            asked = chooser.write(generator, [(name, mode)])
            note({"asked": asked.to_json()})
            note({"label": asked.label, **_timed(rooms, asked)})
            chooser.settled()
            done += 1
    return {"done": done}


def _timed(rooms: Rooms, asked: Write) -> dict[str, object]:
    began = time.monotonic()
    opened: list[float] = []
    told = write(rooms, asked, opened=lambda _: opened.append(time.monotonic()))
    return {**told, "began": began, "opened": opened[0] if opened else None, "ended": time.monotonic()}


# Reading -------------------------------------------------------------------------------------------------------------


def _read(rooms: Rooms, command: Mapping[str, Any], stopped: Stopped) -> dict[str, object]:
    """Read the whole dataset, or what came since a version that was its head before."""
    generator = random.Random(command["seed"])
    dataset = rooms.tree.dataset(command["dataset"])
    done, before = 0, dataset.head_version
    with _journal(command) as note:
        while not stopped(PAUSE_SECONDS):
            since = before if generator.random() < SINCE_IN else None
            at_least = rooms.tree.by_id(dataset.id).head_version
            if generator.random() < 0.1:
                before = at_least
            began = time.monotonic()
            try:
                reader = rooms.storage.read(dataset, ReadRequest(identity=True, since=since), reader="drill")
                at_most = rooms.tree.by_id(dataset.id).head_version
                found = reader.read_all()
            except LakewardError as error:
                note({"error": f"{type(error).__name__}: {error}"})
                continue
            finally:
                done += 1
            seen = {"since": since, "at_least": at_least, "at_most": at_most, "rows": found.num_rows}
            note({**seen, "hash": fingerprint(placed(found)), "seconds": time.monotonic() - began})
    return {"done": done}


def placed(table: pa.Table) -> Iterator[Placed]:
    """Yield the rows of a table with identity columns."""
    return zip(table["__row_index"].to_pylist(), table["id"].to_pylist(), table["note"].to_pylist(), strict=True)


def fingerprint(rows: Iterable[Placed]) -> str:
    """Return a hash of rows, in whatever order they come."""
    return hashlib.md5("\n".join(map(str, sorted(rows))).encode(), usedforsecurity=False).hexdigest()


# Flipping ------------------------------------------------------------------------------------------------------------


def _flip(rooms: Rooms, command: Mapping[str, Any], _stopped: Stopped) -> dict[str, object]:
    """Do one thing with the flip of a dataset, or go on with it where a killed process was; tell how long it took."""
    flip, began = rooms.flip(command["dataset"]), time.monotonic()
    try:
        seconds = FLIPS[command["do"]](rooms, command, flip)
    except UsageError as error:
        return {"failed": f"{command['do']}: {error}"}
    except LakewardError as error:
        return {"again": f"{type(error).__name__}: {error}"}
    return {"seconds": time.monotonic() - began, "stages": seconds}


def _switch(_rooms: Rooms, command: Mapping[str, Any], flip: Flip) -> dict[str, float]:
    return {step.stage: step.seconds for step in flip.run(command["to"], options=Options(max_lag=10_000))}


def _undo(act: Callable[[Flip], object]) -> Callable[[Rooms, Mapping[str, Any], Flip], dict[str, float]]:
    def undo(_rooms: Rooms, _command: Mapping[str, Any], flip: Flip) -> dict[str, float]:
        if flip.status().outcome is None:
            act(flip)
        return {}

    return undo


def _complete(_rooms: Rooms, command: Mapping[str, Any], flip: Flip) -> dict[str, float]:
    """End the flip, unless a process that was killed after that has done so."""
    if flip.status().outcome is None:
        flip.complete(confirm=command["dataset"])
    return {}


def _back(rooms: Rooms, command: Mapping[str, Any], flip: Flip) -> dict[str, float]:
    """Flip what is on the other arm alone back to Postgres, all the way."""
    name = command["dataset"]
    if rooms.tree.dataset(name).route.mode != BACK.final:
        flip.run(BACK.to, options=Options(max_lag=10_000))
    return _complete(rooms, command, flip)


FLIPS: Mapping[str, Callable[[Rooms, Mapping[str, Any], Flip], dict[str, float]]] = {
    "switch": _switch,
    "revert": _undo(Flip.revert),
    "cancel": _undo(Flip.cancel),
    "complete": _complete,
    "back": _back,
}
"""What is done with a flip, by name; each returns how long its stages took."""


Role = Callable[[Rooms, Mapping[str, Any], Stopped], dict[str, object]]

ROLES: Mapping[str, Role] = {"write": _write, "read": _read, "flip": _flip}


@contextmanager
def _journal(command: Mapping[str, Any]) -> Iterator[Callable[[Mapping[str, object]], None]]:
    """Open the journal of a process; each note is in it when the call returns."""
    with Path(command["journal"]).open("a", encoding="utf-8", buffering=1) as file:

        def note(line: Mapping[str, object]) -> None:
            file.write(json.dumps(line) + "\n")

        yield note
