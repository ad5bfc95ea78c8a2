"""Texts of a workbook: what XML can't hold stands in them as `_xHHHH_`, a number in UTF-16 (ECMA-376, 22.4.2.4)."""

from __future__ import annotations

import re

_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")


class NoValue:
    """A cell's content that is no value of any type.

    Args:
        text: what stands there.
        reason: why it is none.
        error: it is an error that Excel shows in the cell, as `#N/A`.
        advice: what to do; None: correct it.
    """

    def __init__(self, text: str, reason: str, error: bool = False, advice: str | None = None) -> None:
        self.advice = advice
        self.text = text
        self.reason = reason
        self.error = error


def unescaped(text: str) -> str | NoValue:
    r"""Return a text as Excel shows it; `NoValue` if no dataset can hold it.

    Example:
        >>> unescaped("a_x000D_\nb_x005F_x000D_")
        'a\r\nb_x000D_'
    """
    if "_x" not in text:
        return text
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    try:
        plain = plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return NoValue(text, "has half a surrogate pair")
    return NoValue(text, "has a NUL") if "\0" in plain else plain
