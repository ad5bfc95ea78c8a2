"""The 32-bit hash of the Iceberg table spec, "Appendix B: 32-bit Hash Requirements", of many values at once.

PyIceberg hashes one value after the other, or needs a compiled package of its own; here NumPy takes a block of four
bytes of all values together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import BinaryType

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_LONG = 512
"""Longer texts are hashed one by one: each takes long enough by itself."""

_one: Callable[[bytes], Any] = BucketTransform(1).transform(BinaryType(), bucket=False)


def hashes(array: pa.Array) -> np.ndarray:
    """Return the hash of each value as int32; what stands for a null is arbitrary.

    Args:
        array: integers, decimals, text or binary.
    """
    type_ = array.type
    if pa.types.is_decimal(type_):
        return _murmur3(*_decimals(array))
    if pa.types.is_fixed_size_binary(type_):
        width = type_.byte_width
        data = np.frombuffer(array.buffers()[1], np.uint8)
        starts = (np.arange(len(array), dtype=np.int64) + array.offset) * width
        return _murmur3(data, starts, np.full(len(array), width, np.int64))
    if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_):
        _, offsets, data = array.buffers()
        ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        return _murmur3(np.frombuffer(data or b"", np.uint8), ends[:-1], np.diff(ends))
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return hashes(array.cast(pa.large_binary()))
    numbers = np.ascontiguousarray(pc.fill_null(array.cast(pa.int64()), 0), dtype="<i8")
    eights = np.arange(len(numbers), dtype=np.int64) * 8
    return _murmur3(numbers.view(np.uint8), eights, np.full(len(numbers), 8, np.int64))


def _decimals(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the unscaled values as the fewest big-endian bytes that hold them in two's complement."""
    wide = array.cast(pa.decimal128(38, array.type.scale)) if array.type.bit_width != 128 else array
    little = np.frombuffer(wide.buffers()[1], np.uint8)[wide.offset * 16 : (wide.offset + len(wide)) * 16]
    big = np.ascontiguousarray(little.reshape(-1, 16)[:, ::-1])
    sign = np.where(big[:, 0] & 0x80, np.uint8(0xFF), np.uint8(0))
    spare = np.zeros(len(big), np.int64)
    leading = np.ones(len(big), bool)
    for position in range(15):
        # A byte can go if it only repeats the sign, which the next one must still show.
        leading &= (big[:, position] == sign) & ((big[:, position + 1] ^ sign) & 0x80 == 0)
        spare += leading
    return big.reshape(-1), np.arange(len(big), dtype=np.int64) * 16 + spare, 16 - spare


def _murmur3(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the murmur3 x86 hash, seed 0, of the stretches of `data` that begin at `starts`, as int32."""
    # Words are read at any byte, up to four behind the end; what is read there is masked away.
    padded = np.concatenate([data, np.zeros(4, np.uint8)])
    words = np.ndarray((len(padded) - 3,), "<u4", padded, 0, (1,))
    result = np.zeros(len(starts), np.uint32)
    blocks = lengths >> 2
    short = lengths <= _LONG
    rows = np.flatnonzero(short)
    for block in range(int(blocks[short].max(initial=0))):
        rows = rows[blocks[rows] > block]
        mixed = result[rows] ^ _scrambled(words[starts[rows] + 4 * block])
        result[rows] = _rotated(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    rest = lengths & 3
    rows = np.flatnonzero(short & (rest > 0))
    mask = (np.uint32(1) << (rest[rows].astype(np.uint32) * np.uint32(8))) - np.uint32(1)
    result[rows] ^= _scrambled(words[starts[rows] + 4 * blocks[rows]] & mask)
    result ^= lengths.astype(np.uint32)
    result ^= result >> np.uint32(16)
    result *= np.uint32(0x85EBCA6B)
    result ^= result >> np.uint32(13)
    result *= np.uint32(0xC2B2AE35)
    result ^= result >> np.uint32(16)
    hashed = result.view(np.int32)
    for row in np.flatnonzero(~short):
        hashed[row] = _one(data[starts[row] : starts[row] + lengths[row]].tobytes())
    return hashed


def _scrambled(words: np.ndarray) -> np.ndarray:
    return _rotated(words * _C1, 15) * _C2


def _rotated(words: np.ndarray, bits: int) -> np.ndarray:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
