"""What a stream of rows is sent in: lots, each made at once in a thread, and bodies, each sent at once.

A lot is what became of a batch. Its parts are what the batch's columns lie in, and are not copied on their way to a
connection that takes several at once, see `lakeward.server.connection`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

Part = bytes | memoryview

CHUNK_BYTES = 1 << 20
"""How many bytes are sent at once, about."""

CRUMB_BYTES = 4 << 10
"""Parts of fewer bytes than this, on average, are put together: to send each of them would cost more."""


@dataclass(frozen=True)
class Lot:
    """Parts that follow each other.

    Args:
        parts: all of them.
        last: whether nothing comes after it.
    """

    parts: list[Part]
    last: bool = False


class Gathered:
    """The body of a message whose bytes lie in several places.

    Args:
        parts: all of them, in their order.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self._size = sum(map(len, parts))

    def __len__(self) -> int:
        return self._size


def gathered(made: Iterator[Sequence[Part]]) -> Generator[Lot]:
    """Join what is small, because each lot costs a turn of a thread and of the event loop."""
    waiting: list[Part] = []
    for parts in made:
        size = sum(map(len, parts))
        waiting += parts if size >= len(parts) * CRUMB_BYTES else [b"".join(parts)]
        if sum(map(len, waiting)) >= CHUNK_BYTES:
            lot, waiting = Lot(waiting), []
            # While this waits to go on, only whoever sends the lot still holds it.
            del parts
            yield lot
            del lot
    if waiting:
        yield Lot(waiting, last=True)


def bodies(parts: list[Part]) -> Iterator[Gathered]:
    """Cut a lot into what is sent at once. Its list is emptied, so that what was sent is let go of."""
    parts.reverse()
    while parts:
        body: list[Part] = []
        left = CHUNK_BYTES
        while parts and left:
            part = parts.pop()
            if len(part) > left:
                whole = memoryview(part)
                parts.append(whole[left:])
                part = whole[:left]
            body.append(part)
            left -= len(part)
        yield Gathered(body)
