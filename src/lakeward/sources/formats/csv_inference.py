"""Proposes a column's type from every value of it, never from a sample.

A type is proposed only where no value changes: digits that a long or a double can't hold stay decimal or text, and a
number with leading zeros is text. Numbers with a point are decimal, so that sums of them are exact and the same on both
arms; double are those that only a double is written as, with an exponent or ten digits and more behind the point. The
proposal does not depend on how the values were cut into batches: each batch is
classified alone, and `merge` is associative and commutative.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.sources.formats.text_bytes import sizes, surely_none, surely_only
from lakeward.sources.formats.text_values import out_of_range, parse_text, parsed
from lakeward.types.logical import MAX_DECIMAL_PRECISION, parse_type
from lakeward.types.table import arrow_type

_DIGITS = r"^(0|-?[1-9][0-9]{0,37})$"
_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NUMBER_OF_FEW = re.compile(_NUMBER.replace("$", r"\Z")).match
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

    def add_typed(self, values: pa.Array) -> pa.Array:
        """Take the next text values into account, and return them as the type that holds all so far.

        Returns:
            An array of type null, if there was no value yet.
        """
        found = _classified(values, self._kind) if not self.settled else _Found("string", values)
        self._kind = merge(self._kind, found.kind)
        if self._kind is None:
            return pa.nulls(len(values))
        if (
            found.typed is not None
            and not values.null_count
            and found.typed.type == arrow_type(parse_type(self.type_text))
        ):
            return found.typed
        return parse_text(values, self.type_text)


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
    return _classified(values, expected).kind


@dataclass(frozen=True)
class _Found:
    """The kind of some values; and these as values of a type, where finding it has made them."""

    kind: Kind | None
    typed: pa.Array | None = None


def _classified(values: pa.Array, expected: Kind | None) -> _Found:
    values = values.drop_null()
    if not len(values):
        return _Found(None)
    if isinstance(expected, str) and expected in _CHECKS and (typed := _CHECKS[expected](values)) is not None:
        return _Found(expected, typed)
    # What a few are not, all are not.
    few = values[:_FEW]
    if all(map(_NUMBER_OF_FEW, few.to_pylist())):
        pointed = isinstance(expected, Numbers) and expected.scale is not None
        inexact = isinstance(expected, Numbers) and not expected.as_double
        numbers = (None if pointed else _whole_numbers(values)) or _numbers(values, inexact)
        if numbers is not None:
            return numbers
    for kind, check in _CHECKS.items():
        if check(few) is not None and (typed := check(values)) is not None:
            return _Found(kind, typed)
    return _Found("string", values)


def _whole_numbers(values: pa.Array) -> _Found | None:
    if (longs := _longs(values)) is not None:
        found = pc.min_max(longs)
        digits = len(str(max(-found["min"].as_py(), found["max"].as_py())))
        return _Found(Numbers(digits, None, True, digits <= _EXACT_DOUBLE_DIGITS, floating=False), longs)
    if not _all_match(values, _DIGITS):
        return None
    digits = pc.max(pc.utf8_length(pc.utf8_ltrim(values, "-"))).as_py()
    as_long = digits <= _LONG_DIGITS or parsed(values, parse_type("long")) is not None
    return _Found(Numbers(digits, None, as_long, digits <= _EXACT_DOUBLE_DIGITS, floating=False))


def _longs(values: pa.Array) -> pa.Array | None:
    """Return values that are all longs, written as longs are; None: one may not be."""
    if not surely_only(values, b"0123456789-"):
        return None
    try:
        numbers = values.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    # The cast takes leading zeros and a negative zero, which no long is written with.
    if not surely_none(values, b"-") and _any_starts(values, "-0"):
        return None
    return None if _any_leading_zero(values) else numbers


def _numbers(values: pa.Array, inexact: bool) -> _Found | None:
    """Return what is known of values that are all numbers; None: one is not.

    Args:
        values: texts.
        inexact: it is known of others that not all are doubles, so that nothing hangs on these.
    """
    any_floating = False
    doubles = _plain(values)
    if doubles is None:
        if not _all_match(values, _NUMBER):
            return None
        floating = pc.match_substring_regex(values, _FLOATING)
        any_floating = bool(pc.any(floating).as_py())
    plain = values.filter(pc.invert(floating)) if any_floating else values
    if not surely_none(plain, b"-"):
        plain = pc.utf8_ltrim(plain, "-")
    point = pc.find_substring(plain, ".")
    length = pc.binary_length(plain)
    if len(plain) and pc.min(point).as_py() < 0:
        whole = pc.if_else(pc.less(point, 0), length, point)
        behind = pc.if_else(pc.less(point, 0), None, pc.subtract(pc.subtract(length, point), 1))
    else:
        whole, behind = point, pc.subtract(pc.subtract(length, point), 1)
    scale = pc.max(behind).as_py()
    as_double = not inexact and _is_double(values, doubles)
    kind = Numbers(pc.max(whole).as_py() or 0, scale, as_long=False, as_double=as_double, floating=any_floating)
    return _Found(kind, doubles if as_double and kind.type_text == "double" else None)


def _plain(values: pa.Array) -> pa.Array | None:
    """Return the doubles of plain numbers, without an exponent or negative zero; None: one may be no such."""
    if not surely_only(values, b"0123456789.-"):
        return None
    if not surely_none(values, b"-"):
        odd = values.filter(pc.or_(pc.starts_with(values, "-0"), pc.starts_with(values, "-.")))
        if len(odd) and (not _all_match(odd, _NUMBER) or _any_match(odd, _FLOATING)):
            return None
    try:
        doubles = values.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return None if _any_leading_zero(values) else doubles


def _any_leading_zero(values: pa.Array) -> bool:
    """Tell whether one of texts of digits, points and minus signs begins with a zero and another digit."""
    zero = values.filter(pc.starts_with(values, "0"))
    right = pc.or_(pc.starts_with(zero, "0."), pc.equal(pc.binary_length(zero), 1))
    return not pc.all(right, min_count=0).as_py()


def _any_match(values: pa.Array, pattern: str) -> bool:
    # A pattern is compiled anew with each call, which of few values is most of the work.
    return len(values) > 0 and bool(pc.any(pc.match_substring_regex(values, pattern), min_count=0).as_py())


def _any_starts(values: pa.Array, start: str) -> bool:
    return bool(pc.any(pc.starts_with(values, start), min_count=0).as_py())


def _all_match(values: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


def _booleans(values: pa.Array) -> pa.Array | None:
    all_are = pc.all(pc.is_in(values, pa.array(["true", "false"]))).as_py()
    return values.cast(pa.bool_()) if all_are else None


def _is_double(values: pa.Array, doubles: pa.Array | None) -> bool:
    """Tell whether numbers are the doubles that their digits say; these doubles, where they are made already."""
    if sizes(values)[1] <= _EXACT_DOUBLE_DIGITS and surely_none(values, b"e", b"E"):
        return True
    # A text that is not longer than so many digits and a point has not too many; whole numbers come next.
    length = pc.binary_length(values)
    long = values.filter(pc.greater(length, _MOST_DOUBLE_DIGITS + 1))
    if _any_match(long, _TOO_MANY_DIGITS):
        return False
    whole = values.filter(
        pc.and_(pc.greater(length, _EXACT_DOUBLE_DIGITS), pc.equal(pc.find_substring(values, "."), -1))
    )
    if _any_match(whole, _LONG_WHOLE_NUMBER):
        return False
    if doubles is not None:
        return not out_of_range(values, doubles)
    return parsed(values, parse_type("double")) is not None


def _instants(values: pa.Array, kind: str, pattern: str, shortest: int) -> pa.Array | None:
    # Of shorter texts some are instants for the parser that are none here: those without minutes.
    if sizes(values)[0] < shortest and not _all_match(values, pattern):
        return None
    return parsed(values, parse_type(kind))


_CHECKS: dict[str, Callable[[pa.Array], pa.Array | None]] = {
    "boolean": _booleans,
    "date": lambda values: parsed(values, parse_type("date")),
    "timestamp": lambda values: _instants(values, "timestamp", _INSTANT + "$", len("2024-02-29 10:11")),
    "timestamptz": lambda values: _instants(
        values, "timestamptz", _INSTANT + _ZONE + "$", len("2024-02-29 10+01:00") + 1
    ),
}
