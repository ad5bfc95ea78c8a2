"""Proposes a column's type from every value of it, never from a sample.

A type is proposed only where no value changes: digits that a long or a double can't hold stay decimal or text, and a
number with leading zeros is text. The proposal does not depend on how the values were cut into batches: each batch is
classified alone, and `merge` is associative and commutative.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.sources.formats.text_values import Unconvertible, parse_text

_DIGITS = r"^(0|-?[1-9][0-9]{0,37})$"
_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
# More digits than any double's shortest text has: such a number would come back changed.
_TOO_MANY_DIGITS = r"^[^eE1-9]*[1-9](\.?[0-9]){17,}"
# Among doubles, whole numbers of up to 15 digits are exact. Longer ones are ids more often than measures.
_LONG_WHOLE_NUMBER = r"^-?[0-9]{16,}$"
_MAX_WHOLE_DOUBLE = 10**15 - 1

_WIDE_LONG = "long beside which no double may stand"


class TypeInference:
    """The proposal for one column, updated batch by batch."""

    def __init__(self) -> None:
        self._kind: str | None = None

    @property
    def type_text(self) -> str:
        """The logical type text that holds every value seen; `string` where there was none."""
        if self._kind is None:
            return "string"
        return "long" if self._kind == _WIDE_LONG else self._kind

    def add(self, values: pa.Array) -> None:
        """Take the next text values into account; nulls say nothing."""
        if self._kind != "string":
            self._kind = merge(self._kind, classify(values, self._kind))


def merge(left: str | None, right: str | None) -> str | None:
    """Return the kind that holds the values of both; `None` is the kind of no values."""
    if left is None or right is None or left == right:
        return left if right is None else right
    pair = {left, right}
    if pair == {"long", _WIDE_LONG}:
        return _WIDE_LONG
    if "decimal(38,0)" in pair and pair & {"long", _WIDE_LONG}:
        return "decimal(38,0)"
    if pair == {"long", "double"}:
        return "double"
    return "string"


def classify(values: pa.Array, expected: str | None = None) -> str | None:
    """Return the narrowest kind that holds these values exactly, trying `expected` first to save time."""
    values = values.drop_null()
    if not len(values):
        return None
    if expected in ("boolean", "date", "timestamp", "timestamptz") and _CHECKS[expected](values):
        return expected
    if _parses(values, "long") and _all_match(values, _DIGITS):
        numbers = values.cast(pa.int64())
        extremes = pc.min_max(numbers).as_py()
        return "long" if max(-extremes["min"], extremes["max"]) <= _MAX_WHOLE_DOUBLE else _WIDE_LONG
    for kind, check in _CHECKS.items():
        if check(values):
            return kind
    return "string"


def _all_match(values: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


def _parses(values: pa.Array, kind: str) -> bool:
    try:
        parse_text(values, kind)
    except Unconvertible:
        return False
    return True


def _is_boolean(values: pa.Array) -> bool:
    return bool(pc.all(pc.is_in(values, pa.array(["true", "false"]))).as_py())


def _is_double(values: pa.Array) -> bool:
    return (
        _all_match(values, _NUMBER)
        and not pc.any(pc.match_substring_regex(values, f"{_TOO_MANY_DIGITS}|{_LONG_WHOLE_NUMBER}")).as_py()
        and _parses(values, "double")
    )


_CHECKS: dict[str, Callable[[pa.Array], bool]] = {
    "decimal(38,0)": lambda values: _all_match(values, _DIGITS),
    "double": _is_double,
    "boolean": _is_boolean,
    "date": lambda values: _all_match(values, _DATE) and _parses(values, "date"),
    "timestamp": lambda values: _all_match(values, _INSTANT + "$") and _parses(values, "timestamp"),
    "timestamptz": lambda values: _all_match(values, _INSTANT + _ZONE + "$") and _parses(values, "timestamptz"),
}
