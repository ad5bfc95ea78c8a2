"""Bytes that are no text of a file's encoding, and NULs, marked so that their record can be told and left out.

A dataset holds no NUL, so a NUL is the mark: behind it stands the byte as `xe9`, of a NUL itself `x00`.
"""

from __future__ import annotations

import codecs
import re

ERRORS = "lakeward.escaped"
"""The name under which a decoder marks what it can't decode."""

MARK = "\0"
_NUL = "\udc00"
# A byte b as U+DC00 + b, which no decoder returns for anything else.
_BYTE = re.compile("[\udc00-\udcff]")
_MARKED = re.compile(r"\0x([0-9a-f]{2})")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(ERRORS, _escaped)


def encoded(text: str) -> bytes:
    """Return what a decoder with `ERRORS` gave as UTF-8, with marks."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        pass
    else:
        if b"\0" not in data:
            return data
    text = text.replace("\0", _NUL)
    return _BYTE.sub(lambda found: f"{MARK}x{ord(found[0]) - 0xDC00:02x}", text).encode()


def fault_of(text: str, encoding: str) -> str | None:
    """Return what the first mark in a text says; None: there is none."""
    found = _MARKED.search(text)
    if found is None:
        return None
    return "holds a NUL" if found[1] == "00" else f"is not {encoding}: byte 0x{found[1]}"


def unmarked(text: str) -> str:
    r"""Return a text for people: marked bytes stand as `\xe9`."""
    return text.replace(MARK, "\\")
