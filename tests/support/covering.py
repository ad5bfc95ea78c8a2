"""Of tests with many cells, those that a run plays; `LAKEWARD_TEST_ROUNDS=2 make test` plays all of them.

What goes wrong depends on one value or on two that meet, and hardly ever on three. So a test can name which parameters'
values have to meet, `@covering("arm point", "verb")` above its `parametrize`: as many cells are kept as that takes,
always the same ones, and the other parameters take turns.

Where it takes longest each run plays a quarter of what is left, by chance this one or another. Its last lines say
which, and `LAKEWARD_TEST_TURN` plays it again.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar
from zlib import crc32

import pytest

from support.rounds import TIMES

MARK = "covering"

TURN = "LAKEWARD_TEST_TURN"
"""The variable that says which cells' turn it is; workers have it from the process that starts them."""

TURNS = 4
"""Each cell is played once in so many runs."""

FEW = 3
"""A test of so many cells, or fewer, plays them all."""

IN_TURN = (
    "tests/catalog/",
    "tests/cdc/",
    "tests/conformance/",
    "tests/crash/",
    "tests/destination/",
    "tests/equality/",
    "tests/foreign/",
    "tests/maintenance/",
    "tests/moves/",
    "tests/server/",
    "tests/stores/",
    "tests/sync/",
    "tests/unit/pipelines/expectations/test_audit.py",
    "tests/unit/pipelines/expectations/test_quarantine.py",
    "tests/unit/pipelines/models/test_predictions",
    "tests/unit/pipelines/models/test_stages.py",
    "tests/unit/pipelines/python/test_builds.py",
    "tests/unit/pipelines/test_deltas.py",
    "tests/unit/pipelines/test_one_off.py",
    "tests/unit/pipelines/test_up_to_date.py",
    "tests/unit/storage/test_evolved_tables.py",
    "tests/unit/storage/test_iceberg_merge",
    "tests/unit/storage/test_partitions.py",
    "tests/unit/storage/test_postgres_merge.py",
    "tests/unit/storage/test_repeats.py",
)
"""Where tests take turns: with these a run took 23 minutes, more than half of it here."""

Cell = Mapping[str, Hashable]
T = TypeVar("T")


def take_turn() -> str:
    """Choose which cells' turn it is, unless that was said, and say it to the workers; return how to play it again."""
    turn = os.environ.setdefault(TURN, str(random.SystemRandom().randrange(TURNS)))
    return f"cells in turn: {TURN}={turn} plays the same ones again"


def covering(*together: str) -> pytest.MarkDecorator:
    """Mark a test of which some cells are played.

    Args:
        together: names of parameters, with blanks between those whose values all have to meet one another.
    """
    return pytest.mark.covering(*together)


def without_others(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that are played, in their order, and those that are left out."""
    if TIMES > 1:
        return items, []
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    played: set[pytest.Item] = set()
    for name, cells in tests.items():
        mark = cells[0].get_closest_marker(MARK)
        kept = [cells[place] for place in sorted(cover(_values(cells), mark.args))] if mark else cells
        played.update(in_turn(kept, int(os.environ[TURN])) if name.startswith(IN_TURN) else kept)
    return [item for item in items if item in played], [item for item in items if item not in played]


def in_turn(cells: Sequence[T], turn: int) -> Sequence[T]:
    """Return the cells whose turn it is.

    Example:
        >>> in_turn("abcdefgh", 1)
        'bf'
    """
    return cells if len(cells) <= FEW else cells[turn % TURNS :: TURNS]


def cover(cells: Sequence[Cell], together: Sequence[str]) -> set[int]:
    """Return the places of cells that have every combination of the named parameters' values that there is.

    Raises:
        KeyError: the test has no such parameter.

    Example:
        >>> cells = [{"arm": arm, "verb": verb, "point": point} for arm in "12" for verb in "123" for point in "1234"]
        >>> len(cover(cells, ["arm point", "verb"]))
        8
    """
    groups = [group.split() for group in together]
    left = [{(*group, *(cell[name] for name in group)) for group in map(tuple, groups)} for cell in cells]
    chosen: set[int] = set()
    while any(left):
        # Among equals by a hash: the first in the order have the first value of a parameter again and again.
        best = max(range(len(cells)), key=lambda place: (len(left[place]), crc32(repr(cells[place]).encode())))
        covered = left[best]
        chosen.add(best)
        left = [each - covered for each in left]
    return chosen


def _values(cells: Sequence[pytest.Item]) -> list[Cell]:
    """Return what tells the cells apart, alike in every process: values where they are plain, else numbers."""
    numbers: dict[int, int] = {}
    return [
        {
            name: value
            if isinstance(value, str | int | float | bool | None)
            else numbers.setdefault(id(value), len(numbers))
            for name, value in sorted(cell.callspec.params.items())
        }
        for cell in cells
        if isinstance(cell, pytest.Function)
    ]
