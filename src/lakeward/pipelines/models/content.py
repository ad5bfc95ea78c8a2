"""Says what a file is that is no model, from its content. Nothing is unpickled, unpacked to disk, imported or run."""

from __future__ import annotations

import io
import json
import pickletools
import re
import zipfile

_MAGIC = (
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"PAR1", "a Parquet file"),
    (b"\x1f\x8b", "gzip data, in which joblib keeps pickles"),
    (b"BZh", "bzip2 data, in which joblib keeps pickles"),
    (b"\xfd7zXZ\x00", "xz data, in which joblib keeps pickles"),
    (b"\x5d\x00\x00", "lzma data, in which joblib keeps pickles"),
    (b"\x04\x22\x4d\x18", "lz4 data, in which joblib keeps pickles"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x78\x01", "zlib data, in which joblib keeps pickles"),
    (b"\x78\x5e", "zlib data, in which joblib keeps pickles"),
    (b"\x78\x9c", "zlib data, in which joblib keeps pickles"),
    (b"\x78\xda", "zlib data, in which joblib keeps pickles"),
)
_NUMPY = b"\x93NUMPY"
_PICKLE = "a pickle, which can run any program when it is loaded"
_OBJECT = re.compile(rb"'descr':\s*\[?.{0,400}?[|<>=]?O\d?'")
_YAML_TAG = re.compile(r"!!python|!<tag:yaml\.org,2002:python")
_LOOKED_AT = 1 << 20
_FEW = 10_000


def what_is(content: bytes) -> str:
    """Return what a file is, in words that end a sentence.

    Example:
        >>> what_is(b"[1, 2]")
        'JSON'
    """
    if not content:
        return "empty"
    if content.startswith(_NUMPY):
        return _numpy(content)
    if is_pickle(content):
        return _PICKLE
    if zipfile.is_zipfile(io.BytesIO(content)):
        return _zip(content)
    for magic, what in _MAGIC:
        if content.startswith(magic):
            return what
    return _text(content[:_LOOKED_AT], whole=len(content) <= _LOOKED_AT)


def is_pickle(content: bytes) -> bool:
    """Say whether a file is a pickle of any protocol: its instructions are read, and none is carried out."""
    if content[:1] == b"\x80" and len(content) > 1 and content[1] <= 5:
        return True
    try:
        # A pickle of protocol 0 or 1 has no mark of its own: it is one if all of it reads as instructions.
        for number, (operation, _, position) in enumerate(pickletools.genops(content[:_LOOKED_AT])):
            if operation.name == "STOP":
                return number > 0 and position is not None
            if number >= _FEW:
                return True
    except (ValueError, IndexError, UnicodeError, OverflowError, MemoryError):
        return False
    return False


def _numpy(content: bytes) -> str:
    if _OBJECT.search(content[:_LOOKED_AT].split(b"\n", 1)[0]):
        return f"a NumPy array of Python objects, which is {_PICKLE}"
    return "a NumPy array"


def _zip(content: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist()[:_FEW]:
                with archive.open(member) as file:
                    start = file.read(4096)
                if is_pickle(start) or (start.startswith(_NUMPY) and "objects" in _numpy(start)):
                    return f"a zip archive with {member.filename!r} in it, which is {_PICKLE}"
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError, ValueError) as error:
        return f"a zip archive that can't be read ({type(error).__name__})"
    return "a zip archive"


def _text(start: bytes, *, whole: bool) -> str:
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError:
        return "of no format that is known here"
    if _YAML_TAG.search(text):
        return "YAML with tags that make Python objects, which can run any program when it is loaded"
    if whole and text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return "text"
        return "JSON"
    return "text"
