"""A pipeline that is written as text is the same when it is read back."""

from __future__ import annotations

import pytest

from lakeward.errors import SpecError
from lakeward.pipelines.fingerprint import fingerprint
from lakeward.pipelines.registry import Applied
from lakeward.pipelines.text import difference, in_place, read, written

SPEC = """
pipeline: orders daily
tags: [daily]
schedule: "0 6 * * *"
nodes:
  orders: {source: 'main.raw."or.ders"'}
  kept:
    transform: |
      -- kept: "ünïcode"
      select id, amount
      from orders
      where amount > 10
  by_size: {split: {input: kept, where: "amount >= 1000", true: big, false: small}}
outputs:
  - dataset: main.analytics.big
    from: big
    strategy: snapshot_replace
    primary_key: [id]
    expectations: [{row_count: {min: 1}}, primary_key, {row: {check: "amount < 1e7", on_fail: quarantine}}]
"""


def test_it_is_read_back_as_it_was() -> None:
    """Its texts of several lines stand as such, and not in quotes."""
    pipeline = read(SPEC)
    text = written(pipeline)
    again = read(text)
    assert (again.spec, fingerprint(again)) == (pipeline.spec, fingerprint(pipeline))
    assert "transform: |" in text
    assert "where amount > 10\n" in text
    assert ": null" not in text and "[]" not in text


def test_what_it_has_of_code_stays() -> None:
    """Nobody writes that by hand."""
    before = read(SPEC).with_code({"a.py": "def f(): ..."})
    assert "a.py" not in written(before)
    assert read(written(before), before).spec.code == {"a.py": "def f(): ..."}


def test_only_it_is_changed() -> None:
    """All others stand in the project as they are applied; one that can't be read is not taken away."""
    one, two = read(SPEC), read(SPEC.replace("orders daily", "other").replace("analytics.big", "analytics.other"))
    applied = {each.name: _applied(each.name, each) for each in (one, two)}
    changed = read(SPEC.replace("amount > 10", "amount > 20"))
    assert in_place(applied, changed).pipelines == (changed, two)
    with pytest.raises(SpecError, match="'old' was applied by another version"):
        in_place({**applied, "old": _applied("old", None)}, changed)


def test_a_difference_has_what_became_of_each_line() -> None:
    """Parts that are the same are cut."""
    assert difference("a\nb\nc", "a\nB\nc") == [
        ("@", "@@ -1,3 +1,3 @@"), (" ", "a"), ("-", "b"), ("+", "B"), (" ", "c")
    ]  # fmt: skip
    assert difference("same", "same") == []


def _applied(name: str, pipeline: object) -> Applied:
    return Applied(name, pipeline, "", None, "")  # type: ignore[arg-type]
