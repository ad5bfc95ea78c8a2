"""Of a test with many cells, those that are worth their time: `@covering("arm point", "verb")` above its `parametrize`.

What goes wrong depends on one value or on two that meet, and hardly ever on three. So a test names which parameters'
values have to meet, every run plays as many cells as that takes, always the same ones, and the other parameters take
turns. `LAKEWARD_TEST_ROUNDS=2 make test` plays all cells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from zlib import crc32

import pytest

from support.rounds import TIMES

MARK = "covering"

Cell = Mapping[str, Hashable]


def covering(*together: str) -> pytest.MarkDecorator:
    """Mark a test of which some cells are played.

    Args:
        together: names of parameters, with blanks between those whose values all have to meet one another.
    """
    return pytest.mark.covering(*together)


def without_others(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that are played, in their order, and those that are left out."""
    grids: dict[tuple[str, tuple[str, ...]], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if TIMES == 1 and (mark := item.get_closest_marker(MARK)):
            grids[item.nodeid.partition("[")[0], mark.args].append(item)
    out: set[pytest.Item] = set()
    for (_, together), cells in grids.items():
        chosen = cover(_values(cells), together)
        out.update(item for number, item in enumerate(cells) if number not in chosen)
    return [item for item in items if item not in out], [item for item in items if item in out]


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
