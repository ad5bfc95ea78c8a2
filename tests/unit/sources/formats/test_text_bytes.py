"""What is told of many texts at once is what is told of each by itself, whatever stands among them."""

from __future__ import annotations

import re
from functools import reduce

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakeward.sources.formats.csv_inference import Kind, Numbers, TypeInference, merge
from lakeward.sources.formats.text_bytes import bytes_of, sizes, surely_none, surely_only
from lakeward.sources.formats.text_values import Unconvertible, parse_text

_WHOLE = st.integers(-(2**65), 2**65).map(str) | st.integers(-99, 99).map(str)
_POINTED = st.from_regex(r"-?(0|[1-9][0-9]{0,18})?\.?[0-9]{0,20}", fullmatch=True)
_DOUBLES = st.floats().map(repr) | st.sampled_from(["-0", "-0.0", "1e5", "1E400", "1e-400", "9007199254740993", "0e1"])
_INSTANTS = st.from_regex(
    r"(0000|0001|2024|9999)-(02|12)-(29|31)"
    r"([T ](00|23)(:(00|59)(:(00|60)(\.[0-9]{0,7})?)?)?(Z|z|[+-]23(:?59)?)?)?",
    fullmatch=True,
)
_ODD = st.text("0019+-.eExX tTrRuUfFaAlLsS:Z\u0661\u017f", max_size=6) | st.sampled_from(
    ["True", "FALSE", "\u212a", ""]
)
_TEXTS = st.one_of(_WHOLE, _POINTED, _DOUBLES, _INSTANTS, _ODD)
_LISTS = st.one_of(
    [st.lists(st.none() | each, min_size=1, max_size=7) for each in (_TEXTS, _WHOLE, _POINTED, _INSTANTS)]
)
_TYPES = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(18,4)",
    "decimal(38,30)",
    "date",
    "timestamp",
    "timestamptz",
)


def _outcome(values: pa.Array, type_: str) -> object:
    try:
        return [repr(value) for value in parse_text(values, type_).to_pylist()]
    except Unconvertible as error:
        return error.index, error.value, error.reason


@settings(max_examples=150, deadline=None)
@given(values=_LISTS, type_=st.sampled_from(_TYPES))
def test_a_value_is_parsed_as_patterns_have_it(values: list[str | None], type_: str) -> None:
    # Of large strings nothing is told at once.
    assert _outcome(pa.array(values, pa.string()), type_) == _outcome(pa.array(values, pa.large_string()), type_)


@settings(max_examples=200, deadline=None)
@given(values=_LISTS, cut=st.integers(0, 7))
@example(values=["1.5"] * 4 + ["01.5"], cut=0)
@example(values=["-0.5", "1.5"] * 3 + ["-.0"], cut=2)
@example(values=["2024-02-29 10"], cut=0)
@example(values=["2024-02-29 10+01:00"], cut=0)
@example(values=["2024-02-29"] * 4 + ["2024-02-29 10:00"], cut=1)
def test_a_type_is_proposed_as_patterns_have_it(values: list[str | None], cut: int) -> None:
    inference = TypeInference()
    for part in (values[:cut], values[cut:]):
        inference.add(pa.array([None, *part], pa.string())[1:])
    kind = reduce(merge, [None if value is None else _kind(value) for value in values])
    assert inference.type_text == (kind.type_text if isinstance(kind, Numbers) else kind or "string")


def _kind(text: str) -> Kind:
    """Return the kind of one text, by patterns alone."""
    digits = text.lstrip("-")
    if re.fullmatch(r"0|-?[1-9][0-9]{0,37}", text):
        return Numbers(len(digits), None, -(2**63) <= int(text) < 2**63, len(digits) <= 15, floating=False)
    if re.fullmatch(r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        too_many = re.match(r"[^eE1-9]*[1-9](\.?[0-9]){17,}|-?[0-9]{16,}$", text) is not None
        as_double = not too_many and _parses(text, "double")
        if re.search(r"[eE]|^-[0.]+$", text):
            return Numbers(0, None, False, as_double, floating=True)
        whole, point, behind = digits.partition(".")
        return Numbers(len(whole), len(behind) if point else None, False, as_double, floating=False)
    instant = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    patterns = {
        "boolean": "true|false",
        "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
        "timestamp": instant,
        "timestamptz": instant + r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)",
    }
    for kind, pattern in patterns.items():
        if re.fullmatch(pattern, text, re.ASCII) and _parses(text, kind):
            return kind
    return "string"


def _parses(text: str, type_: str) -> bool:
    return isinstance(_outcome(pa.array([text], pa.large_string()), type_), list)


@pytest.mark.parametrize(("start", "end"), [(0, 4), (1, 3), (2, 2), (3, 4)])
def test_the_bytes_are_those_of_a_slice(start: int, end: int) -> None:
    texts = ["12", None, "-3", "é"]
    values = pa.array(texts)[start:end]
    assert bytes_of(values) == "".join(text or "" for text in texts[start:end]).encode()
    assert surely_only(values, b"123-") == (end < 4)
    assert surely_none(values, "é".encode()) == (end < 4)


def test_nothing_is_sure_of_another_type() -> None:
    values = pa.array(["1"], pa.large_string())
    assert bytes_of(values) is None
    assert not surely_only(values, b"1")
    assert not surely_none(values, b"2")
    assert sizes(pa.array(["a", None, "éé"])) == (1, 4)
    assert sizes(pa.array([None], pa.string())) == (0, 0)
