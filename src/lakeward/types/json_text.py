"""The canonical text of a JSON value: what PostgreSQL prints for it as `jsonb`, with numbers in one form.

Both arms keep this text, so equal values are equal bytes in a digest, a comparison and a file. Numbers keep all their
digits: none passes through a double.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal

from lakeward.errors import ValueRefused
from lakeward.types.refusal import show

MAX_JSON_DEPTH = 256
"""Arrays and objects inside each other. PostgreSQL's own limit depends on its stack; this is far below it."""

MAX_NUMBER_DIGITS = 1_000
"""Digits of a number written out without exponent. PostgreSQL's limit for `numeric` is far above it."""

_NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")

# Numbers that neither `int` nor `float` prints back digit by digit travel through the C encoder as strings between two
# NULs. No other string can look like that, because a NUL is refused. Refused: an encoder in Python, three times slower.
_MARK = "\0"
_MARKED_NUMBER = re.compile(r'"\\u0000([-0-9.]+)\\u0000"')


def canonical_json(text: str) -> str:
    """Return the canonical text of the JSON value in `text`.

    It is what `select text::jsonb::text` prints in PostgreSQL (keys sorted by length in UTF-8 and then by bytes, of
    equal keys the last one, `", "` and `": "`), with numbers in plain notation without exponent, trailing zeros
    or negative zero. The result is its own canonical text.

    Raises:
        ValueRefused: not JSON (RFC 8259), or JSON that PostgreSQL can't hold: `\\u0000`, half a surrogate pair, a
            number of more than `MAX_NUMBER_DIGITS` digits, nested deeper than `MAX_JSON_DEPTH`. Fields: `value`,
            `reason`.

    Example:
        >>> canonical_json('{"b": 1e2, "a": [1.50, -0], "b": 2}')
        '{"a": [1.5, 0], "b": 2}'
    """
    try:
        tree = _DECODER.decode(text)
        # The count is an upper bound for the depth, and nearly always enough.
        if text.count("[") + text.count("{") > MAX_JSON_DEPTH:
            _check_depth(tree)
        return _encode(tree, may_have_nul="\\u0000" in text)
    except json.JSONDecodeError as error:
        raise _refused(text, f"is not JSON: {error}") from None
    except RecursionError:
        raise _refused(text, _TOO_DEEP) from None
    except UnicodeEncodeError:
        raise _refused(text, _HALF_PAIR) from None
    except ValueError as error:
        raise _refused(text, str(error)) from None


def json_of(value: object) -> str:
    """Return the canonical text of a Python value: `dict`, `list`, `tuple`, `str`, number, `bool` or `None`.

    A `str` is a JSON string here, not JSON text.

    Raises:
        ValueRefused: as `canonical_json`; also a type that JSON has not, NaN and infinity. Fields: `value`, `reason`.
    """
    try:
        return _encode(_tree(value, 0), may_have_nul=True)
    except UnicodeEncodeError:
        raise _refused(value, _HALF_PAIR) from None
    except ValueError as error:
        raise _refused(value, str(error)) from None


_HALF_PAIR = "has half a surrogate pair"
_TOO_DEEP = f"is nested deeper than {MAX_JSON_DEPTH} levels"


def _refused(value: object, reason: str) -> ValueRefused:
    shown = show(value)
    return ValueRefused(f"JSON value {shown} {reason}", value=shown, reason=reason)


class _Digits:
    """A number in its canonical text, where `int` and `float` would not print it so."""

    def __init__(self, text: str) -> None:
        self.text = text


def _integer(text: str) -> int | _Digits:
    # Python refuses to read or print long integers by a limit that a program may lower to 640 digits.
    return int(text) if len(text) < 600 else _Digits(_plain(text))


def _number(text: str) -> int | float | _Digits:
    """Read a number with a fraction or an exponent."""
    value = float(text)
    printed = repr(value)
    if printed == text and text[-2:] != ".0" and "e" not in text:
        return value
    plain = _plain(text)
    if "." not in plain:
        return _integer(plain)
    value = float(plain)
    return value if repr(value) == plain else _Digits(plain)


def _plain(text: str) -> str:
    """Return a JSON number (or the text of a finite `Decimal`) in plain notation, without zeros that say nothing."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"has the number {text[:40]}, which JSON has not")
    sign, whole, fraction, power = match[1], match[2], match[3] or "", match[4] or "0"
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return "0"
    too_long = f"has the number {text[:40]}, which is longer than {MAX_NUMBER_DIGITS} digits without exponent"
    if len(power.lstrip("+-0")) > 9:
        raise ValueError(too_long)
    exponent = int(power) - len(fraction) + len(digits) - len(significant)
    point = len(significant) + exponent
    if max(point, 1) + max(-exponent, 0) > MAX_NUMBER_DIGITS:
        raise ValueError(too_long)
    if exponent >= 0:
        return sign + significant + "0" * exponent
    if point > 0:
        return f"{sign}{significant[:point]}.{significant[point:]}"
    return f"{sign}0.{'0' * -point}{significant}"


def _key_order(item: tuple[str, object]) -> tuple[int, str]:
    # Code points sort like their UTF-8 bytes.
    return len(item[0].encode()), item[0]


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(pairs) < 2:
        return dict(pairs)
    return dict(sorted(dict(pairs).items(), key=_key_order))


def _constant(name: str) -> object:
    raise ValueError(f"is not JSON: it has no {name}")


def _marked(number: object) -> str:
    assert isinstance(number, _Digits)
    return f"{_MARK}{number.text}{_MARK}"


_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_number, parse_constant=_constant, object_pairs_hook=_object, strict=True
)
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(", ", ": "), check_circular=False, allow_nan=False, default=_marked
)


def _encode(tree: object, *, may_have_nul: bool) -> str:
    if may_have_nul:
        _check_nul(tree)
    text = _ENCODER.encode(tree)
    if '"\\u0000' in text:
        text = _MARKED_NUMBER.sub(r"\1", text)
    text.encode()  # raises on half a surrogate pair
    return text


def _check_nul(tree: object) -> None:
    for value in _walk(tree):
        if isinstance(value, str) and _MARK in value:
            raise ValueError("has a NUL character")


def _walk(tree: object) -> list[object]:
    """Return every value and key of a tree; without recursion, because the tree may be deep."""
    found = [tree]
    for value in found:
        if isinstance(value, dict):
            found.extend(value)
            found.extend(value.values())
        elif isinstance(value, list):
            found.extend(value)
    return found


def _check_depth(tree: object) -> None:
    level = [tree] if isinstance(tree, dict | list) else []
    for _ in range(MAX_JSON_DEPTH):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, dict | list)
        ]
    if level:
        raise ValueError(_TOO_DEEP)


def _tree(value: object, depth: int) -> object:
    """Return a Python value as the decoder would have read it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return _int_tree(int(value))
    if isinstance(value, float):
        if value - value != 0:
            raise ValueError(f"has {value!r}, which JSON has not")
        return _number(float.__repr__(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"has {value!r}, which JSON has not")
        return _number(str(value))
    if not isinstance(value, dict | list | tuple):
        raise ValueError(f"has a {type(value).__name__}, which JSON has not")
    if depth >= MAX_JSON_DEPTH:
        raise ValueError(_TOO_DEEP)
    if not isinstance(value, dict):
        return [_tree(item, depth + 1) for item in value]
    for key in value:
        if not isinstance(key, str):
            raise ValueError(f"has the key {key!r}, which is not text")
    return _object([(str.__str__(key), _tree(item, depth + 1)) for key, item in value.items()])


def _int_tree(value: int) -> int | _Digits:
    if value.bit_length() > 1_900:  # more than 570 digits
        if value.bit_length() > 4 * MAX_NUMBER_DIGITS:
            raise ValueError(f"has a number that is longer than {MAX_NUMBER_DIGITS} digits")
        return _Digits(_plain(format(Decimal(value), "f")))
    return value
