"""Prefetching: the same items in the same order, errors in their place, and no thread left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from lakeward.storage.pump import AHEAD_BYTES, prefetched


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("lakeward-prefetch")]


def test_items_come_in_order() -> None:
    with prefetched(iter(range(100))) as items:
        assert list(items) == list(range(100))
        assert list(items) == []
    assert threads() == []


def test_nothing() -> None:
    with prefetched([]) as items:
        assert list(items) == []


def test_an_error_comes_in_its_place() -> None:
    def source() -> Iterator[int]:
        yield 1
        yield 2
        raise ZeroDivisionError("third")

    seen = []
    with pytest.raises(ZeroDivisionError, match="third"), prefetched(source()) as items:
        seen.extend(items)
    with prefetched(source()) as items:
        assert [next(items), next(items)] == [1, 2]
        with pytest.raises(ZeroDivisionError):
            next(items)
    assert threads() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_no_exception_passes_too(error: type[BaseException]) -> None:
    def source() -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(error), prefetched(source()) as items:
        list(items)
    assert threads() == []


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_it_is_at_most_so_far_ahead(depth: int) -> None:
    made = []
    taken = threading.Event()

    def source() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    with prefetched(source(), depth) as items:
        next(items)
        taken.wait(0.3)
        assert len(made) <= depth + 2
    assert threads() == []


def test_large_items_are_made_ahead_one_by_one() -> None:
    made, all_made = [], threading.Event()

    def source() -> Iterator[int]:
        for size in (AHEAD_BYTES // 2, AHEAD_BYTES // 2, 1, 2 * AHEAD_BYTES, 1):
            made.append(size)
            yield size
        all_made.set()

    with prefetched(source(), 5, lambda size: size) as items:
        taken = [next(items)]
        all_made.wait(0.3)
        # Two wait, and the large one, which is made, finds no room beside them.
        assert len(made) == 4
        taken += [next(items), next(items)]
        all_made.wait(0.3)
        # The large one waits alone.
        assert len(made) == 5 and not all_made.is_set()
        assert [*taken, *items] == made
    assert threads() == []


def test_leaving_early_stops_an_endless_source() -> None:
    def source() -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    with prefetched(source()) as items:
        assert next(items) == 0
    assert threads() == []
    with pytest.raises(ZeroDivisionError), prefetched(source()) as items:
        next(items)
        raise ZeroDivisionError
    assert threads() == []
