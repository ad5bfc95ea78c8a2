"""Packed text files: which packings there are is told by first bytes, and a name that promises one is held to it."""

from __future__ import annotations

import gzip
from typing import IO, cast

import pyarrow as pa

from lakeward.errors import SourceFileError
from lakeward.sources.source_file import SourceFile

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BZIP2 = b"BZh"
# Behind the first four bytes of bzip2: a block starts, or the end of an empty file.
_BZIP2_NEXT = (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_MAGIC_BYTES = 10

PACKINGS = (".gz", ".zst", ".bz2", ".zip")
"""What the name of a packed text file ends with."""


def with_packings(*suffixes: str) -> tuple[str, ...]:
    """Return the suffixes alone and with each packing: `.csv`, `.csv.gz` …"""
    return tuple(f"{suffix}{packing}" for suffix in suffixes for packing in ("", *PACKINGS))


def is_zip(packed: IO[bytes]) -> bool:
    """Tell whether a file is a zip archive, by its first bytes."""
    return _magic(packed)[:4] in _ZIP


def unpacked(packed: IO[bytes], file: SourceFile) -> IO[bytes]:
    """Return the bytes of a file, plain or in gzip, zstd or bzip2, as an unpacked stream.

    Reading refuses a file that was cut off (`EOFError`, `OSError`).

    Args:
        packed: the open file, at its start; it has to be closed for itself.
        file: which one, for its name.

    Raises:
        SourceFileError: the name ends with a packing, and the file is not packed.
        OSError: it can't be read.
    """
    magic = _magic(packed)
    if magic.startswith(_GZIP):
        return cast(IO[bytes], gzip.open(packed, "rb"))
    if magic.startswith(_ZSTD):
        return _by_arrow(packed, "zstd")
    if magic.startswith(_BZIP2) and magic[4:] in _BZIP2_NEXT:
        return _by_arrow(packed, "bz2")
    if file.name.lower().endswith(PACKINGS):
        raise SourceFileError(
            f"{file}: is named .{file.name.rpartition('.')[2]}, and is not packed",
            next_step="rename it, or pack it",
            path=str(file),
        )
    return packed


def _magic(packed: IO[bytes]) -> bytes:
    magic = packed.read(_MAGIC_BYTES)
    packed.seek(0)
    return magic


def _by_arrow(packed: IO[bytes], codec: str) -> IO[bytes]:
    # Unlike the standard library's bz2, it refuses what stands behind the last packed stream.
    return cast(IO[bytes], pa.CompressedInputStream(packed, codec))
