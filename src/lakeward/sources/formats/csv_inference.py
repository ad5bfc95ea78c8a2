"""Proposes a column's type from every value of it, never from a sample.

A type is proposed only where no value changes: digits that a long or a double can't hold stay decimal or text, and a
number with leading zeros is text. Numbers with a point are decimal, so that sums of them are exact and the same on both
arms; double are those that only a double is written as, with an exponent or ten digits and more behind the point. The
proposal does not depend on how the values were cut into batches: each batch is
classified alone, and `merge` is associative and commutative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.sources.formats.text_bytes import sizes, surely_none, surely_only
from lakeward.sources.formats.text_values import refusal
from lakeward.types.logical import MAX_DECIMAL_PRECISION, parse_type

_DIGITS = r"^(0|-?[1-9][0-9]{0,37})$"
_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
# More digits than any double's shortest text has: such a number would come back changed.
_TOO_MANY_DIGITS = r"^[^eE1-9]*[1-9](\.?[0-9]){17,}"
# Among doubles, whole numbers of up to 15 digits are exact. Longer ones are ids more often than measures.
_LONG_WHOLE_NUMBER = r"^-?[0-9]{16,}$"
_EXACT_DOUBLE_DIGITS = 15
_MOST_DOUBLE_DIGITS = 17
_FEW = 4
_LONG_DIGITS = 18
# No decimal has a negative zero.
_FLOATING = r"[eE]|^-[0.]+$"
_MOST_MONEY_DIGITS = 9
"""More digits behind the point are written by programs that compute with doubles."""
_DECIMAL_DIGITS = (18, MAX_DECIMAL_PRECISION)
"""Room for numbers that are larger than those of the file, at no cost in space; then all that there is."""


@dataclass(frozen=True)
class Numbers:
    """What is known of a column's numbers.

    Args:
        whole_digits: at most so many stand before the point.
        scale: at most so many stand behind it; None: no number has a point.
        as_long: each is a long.
        as_double: each is the double that its digits say.
        floating: one is written as only a double is: with an exponent, or as negative zero.
    """

    whole_digits: int
    scale: int | None
    as_long: bool
    as_double: bool
    floating: bool

    def __or__(self, other: Numbers) -> Numbers:
        """Return what is known of both."""
        scales = [scale for scale in (self.scale, other.scale) if scale is not None]
        return Numbers(
            max(self.whole_digits, other.whole_digits),
            max(scales, default=None),
            self.as_long and other.as_long,
            self.as_double and other.as_double,
            self.floating or other.floating,
        )

    @property
    def type_text(self) -> str:
        """The type that holds all of them."""
        if self.floating:
            return "double" if self.as_double else "string"
        scale = self.scale or 0
        if self.scale is None and self.as_long:
            return "long"
        if scale > _MOST_MONEY_DIGITS and self.as_double:
            return "double"
        room = _DECIMAL_DIGITS if self.scale is not None else _DECIMAL_DIGITS[-1:]
        fits = [f"decimal({digits},{scale})" for digits in room if self.whole_digits + scale <= digits]
        return fits[0] if fits else "double" if self.as_double else "string"


Kind = str | Numbers
"""What the values of a column are: the text of a type, or numbers."""


class TypeInference:
    """The proposal for one column, updated batch by batch."""

    def __init__(self) -> None:
        self._kind: Kind | None = None

    @property
    def type_text(self) -> str:
        """The logical type text that holds every value seen; `string` where there was none."""
        if isinstance(self._kind, Numbers):
            return self._kind.type_text
        return self._kind or "string"

    @property
    def settled(self) -> bool:
        """Tell whether no other value can change the type."""
        return self._kind == "string"

    def add(self, values: pa.Array) -> None:
        """Take the next text values into account; nulls say nothing."""
        if not self.settled:
            self._kind = merge(self._kind, classify(values, self._kind))


def merge(left: Kind | None, right: Kind | None) -> Kind | None:
    """Return the kind that holds the values of both; `None` is the kind of no values."""
    if left is None or right is None or left == right:
        return left if right is None else right
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        return left | right
    return "string"


def classify(values: pa.Array, expected: Kind | None = None) -> Kind | None:
    """Return the narrowest kind that holds these values exactly, or one that `merge` with `expected` makes the same.

    Args:
        values: texts.
        expected: what is known of those before, which saves time.
    """
    values = values.drop_null()
    if not len(values):
        return None
    if isinstance(expected, str) and expected in _CHECKS and _CHECKS[expected](values):
        return expected
    # What a few are not, all are not.
    few = values[:_FEW]
    if _all_match(few, _NUMBER):
        pointed = isinstance(expected, Numbers) and expected.scale is not None
        inexact = isinstance(expected, Numbers) and not expected.as_double
        numbers = (None if pointed else _whole_numbers(values)) or _numbers(values, inexact)
        if numbers is not None:
            return numbers
    for kind, check in _CHECKS.items():
        if check(few) and check(values):
            return kind
    return "string"


def _whole_numbers(values: pa.Array) -> Numbers | None:
    if (largest := _largest_long(values)) is not None:
        digits = len(str(largest))
        return Numbers(digits, None, True, digits <= _EXACT_DOUBLE_DIGITS, floating=False)
    if not _all_match(values, _DIGITS):
        return None
    digits = pc.max(pc.utf8_length(pc.utf8_ltrim(values, "-"))).as_py()
    as_long = digits <= _LONG_DIGITS or _parses(values, "long")
    return Numbers(digits, None, as_long, digits <= _EXACT_DOUBLE_DIGITS, floating=False)


def _largest_long(values: pa.Array) -> int | None:
    """Return the largest amount of values that are all longs, written as longs are; None: one may not be."""
    if not surely_only(values, b"0123456789-"):
        return None
    try:
        numbers = values.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    if not numbers.cast(values.type).equals(values):
        return None
    found = pc.min_max(numbers)
    smallest, largest = int(found["min"].as_py()), int(found["max"].as_py())
    return max(-smallest, largest)


def _numbers(values: pa.Array, inexact: bool) -> Numbers | None:
    """Return what is known of values that are all numbers; None: one is not.

    Args:
        values: texts.
        inexact: it is known of others that not all are doubles, so that nothing hangs on these.
    """
    any_floating = False
    if not _are_plain(values):
        if not _all_match(values, _NUMBER):
            return None
        floating = pc.match_substring_regex(values, _FLOATING)
        any_floating = bool(pc.any(floating).as_py())
    plain = values.filter(pc.invert(floating)) if any_floating else values
    if not surely_none(plain, b"-"):
        plain = pc.utf8_ltrim(plain, "-")
    point = pc.find_substring(plain, ".")
    length = pc.binary_length(plain)
    whole = pc.if_else(pc.less(point, 0), length, point)
    behind = pc.if_else(pc.less(point, 0), None, pc.subtract(pc.subtract(length, point), 1))
    return Numbers(
        pc.max(whole).as_py() or 0,
        pc.max(behind).as_py(),
        as_long=False,
        as_double=not inexact and _is_double(values),
        floating=any_floating,
    )


def _are_plain(values: pa.Array) -> bool:
    """Tell whether all are numbers, none with an exponent or between minus one and zero; False: one may not be."""
    if not surely_only(values, b"0123456789.-"):
        return False
    if not surely_none(values, b"-") and (_any_starts(values, "-0") or _any_starts(values, "-.")):
        return False
    try:
        values.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    zero = values.filter(pc.starts_with(values, "0"))
    return not pc.any(pc.match_substring_regex(zero, "^0[0-9]"), min_count=0).as_py()


def _any_starts(values: pa.Array, start: str) -> bool:
    return bool(pc.any(pc.starts_with(values, start), min_count=0).as_py())


def _all_match(values: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


def _parses(values: pa.Array, kind: str) -> bool:
    return refusal(values, parse_type(kind)) is None


def _is_boolean(values: pa.Array) -> bool:
    return bool(pc.all(pc.is_in(values, pa.array(["true", "false"]))).as_py())


def _is_double(values: pa.Array) -> bool:
    if sizes(values)[1] <= _EXACT_DOUBLE_DIGITS and surely_none(values, b"e", b"E"):
        return True
    # A text that is not longer has neither too many digits nor, with a point, a whole number's.
    length = pc.binary_length(values)
    long = values.filter(pc.greater(length, _MOST_DOUBLE_DIGITS))
    if pc.any(pc.match_substring_regex(long, _TOO_MANY_DIGITS), min_count=0).as_py():
        return False
    whole = values.filter(
        pc.and_(pc.greater(length, _EXACT_DOUBLE_DIGITS), pc.equal(pc.find_substring(values, "."), -1))
    )
    return not pc.any(pc.match_substring_regex(whole, _LONG_WHOLE_NUMBER), min_count=0).as_py() and _parses(
        values, "double"
    )


def _is_instant(values: pa.Array, kind: str, pattern: str, shortest: int) -> bool:
    # Of shorter texts some are instants for the parser that are none here: those without minutes.
    return (sizes(values)[0] >= shortest or _all_match(values, pattern)) and _parses(values, kind)


_CHECKS: dict[str, Callable[[pa.Array], bool]] = {
    "boolean": _is_boolean,
    "date": lambda values: _parses(values, "date"),
    "timestamp": lambda values: _is_instant(values, "timestamp", _INSTANT + "$", len("2024-02-29 10:11")),
    "timestamptz": lambda values: _is_instant(
        values, "timestamptz", _INSTANT + _ZONE + "$", len("2024-02-29 10+01:00") + 1
    ),
}
