"""Texts of others, errors' among them, as Postgres can hold them."""

from __future__ import annotations


def storable(text: str) -> str:
    r"""Return a text that a column of text or jsonb takes: half a surrogate pair and a NUL are written out.

    Args:
        text: any.

    Example:
        >>> storable("a\0b")
        'a\\x00b'
    """
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")
