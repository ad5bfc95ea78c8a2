"""Which rows a model is trained on, and which are held out to judge it: by a hash, equal on every machine."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

_STEP = np.uint64(0x9E3779B97F4A7C15)


def held_out(rows: int, share: float, seed: int, by: pa.Array | pa.ChunkedArray | None = None) -> Any:
    """Return which rows are held out, as a NumPy array of booleans.

    A row's side depends on the seed, and on its value in `by`; without that, on its position from 0. It does not depend
    on any other row, so that a row that comes on top moves none that is there.

    Args:
        rows: how many there are.
        share: which part is held out, from 0 to below 1; exact on average.
        seed: another one gives another split.
        by: a column; rows of equal values are on one side.
    """
    if by is None:
        keys = np.arange(rows, dtype=np.uint64)
    else:
        texts = (f"{value!r}".encode() for value in by.to_pylist())
        keys = np.array([int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) for text in texts], np.uint64)
    # 53 bits: as many as a double holds exactly.
    return (_mixed(keys ^ _mixed(np.array([seed], dtype=np.uint64))) >> np.uint64(11)) / 2.0**53 < share


def _mixed(keys: Any) -> Any:
    """Return the hash SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014)."""
    keys = keys + _STEP
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
