"""What the bytes of many texts tell at once, where a pattern would look at each text by itself.

Each answer errs on one side alone, which its name says; where it is not the one hoped for, patterns have the last word.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def bytes_of(values: pa.Array) -> bytes | None:
    """Return the bytes of all texts, one behind the other; None: the array is of a type that has them elsewhere.

    Bytes of texts that are null may be among them.
    """
    if values.type != pa.string():
        return None
    if not len(values):
        return b""
    _, offsets, data = values.buffers()
    ends = pa.Array.from_buffers(pa.int32(), len(values) + 1, [None, offsets], offset=values.offset)
    start, end = ends[0].as_py(), ends[len(values)].as_py()
    return bytes(data[start:end]) if end > start else b""


def surely_only(values: pa.Array, characters: bytes) -> bool:
    """Tell whether no text holds any other than these ASCII characters; False: one may."""
    data = bytes_of(values)
    return data is not None and not data.translate(None, characters)


def surely_none(values: pa.Array, *parts: bytes) -> bool:
    """Tell whether no text holds any of these parts; False: one may."""
    data = bytes_of(values)
    return data is not None and not any(part in data for part in parts)


def sizes(values: pa.Array) -> tuple[int, int]:
    """Return the fewest and the most bytes that a text has; of no texts 0 and 0."""
    found = pc.min_max(pc.binary_length(values))
    return found["min"].as_py() or 0, found["max"].as_py() or 0
