"""What a command that runs here for somebody elsewhere is told by: frames, one after the other.

A frame is a letter, the number of bytes that follow (four bytes, the highest first), and those. The client reads them,
too, and so nothing but the standard library is used here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

MEDIA_TYPE = "application/vnd.lakeward.command"

BEGUN = b"B"
"""A JSON document with the `id` that answers are sent to."""
OUT = b"O"
"""Bytes of standard output."""
ERR = b"E"
"""Bytes of standard error."""
ASKS = b"Q"
"""Nothing; the command waits for a line that is typed."""
FILE = b"F"
"""A JSON document: the file `path`, of which `bytes` follow in frames DATA."""
DATA = b"D"
STILL = b"."
"""Nothing; the command goes on, and so does the connection."""
ENDED = b"X"
"""A JSON document with the exit `code`; the last frame. What ends without it has broken off."""

LARGEST = 1 << 20
"""How many bytes a frame has at most."""

_HEAD = struct.Struct(">cI")


def frame(kind: bytes, content: bytes = b"") -> bytes:
    """Return a frame as it is sent.

    Example:
        >>> frame(OUT, b"hi")
        b'O\\x00\\x00\\x00\\x02hi'
    """
    return _HEAD.pack(kind, len(content)) + content


def frames(parts: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield each whole frame of what is received, wherever it was cut on the way.

    Raises:
        ValueError: these are no frames.
    """
    held = b""
    for part in parts:
        held += part
        while len(held) >= _HEAD.size:
            kind, size = _HEAD.unpack_from(held)
            if size > LARGEST:
                raise ValueError(f"a frame of {size:,} bytes")
            if len(held) < _HEAD.size + size:
                break
            yield kind, held[_HEAD.size : _HEAD.size + size]
            held = held[_HEAD.size + size :]
