"""Datasets that a query names in full: which ones, what runs, and where a place in it is in the user's own text."""

from __future__ import annotations

import pytest

from lakeward.compute.full_names import read_full_names
from lakeward.errors import InvalidName


@pytest.mark.parametrize(
    ("sql", "text", "sources"),
    [
        ("select 1 as x", "select 1 as x", {}),
        ("select * from o", "select * from o", {}),
        ("select * from raw.o", "select * from raw.o", {}),
        ('select * from "a.b.c" x', 'select * from "a.b.c" x', {"a.b.c": "a.b.c"}),
        ("select c.x from a.b.c", 'select c.x from "a.b.c" AS "c"', {"a.b.c": "a.b.c"}),
        ("select * from a.b.c as k", 'select * from "a.b.c" as k', {"a.b.c": "a.b.c"}),
        ('from a."x.y" . "c d" select *', 'from "a.""x.y"".c d" AS "c d" select *', {'a."x.y".c d': 'a."x.y".c d'}),
        (
            "select * from a.b.c join A.b.C k using (id)",
            'select * from "a.b.c" AS "c" join "a.b.c" k using (id)',
            {"a.b.c": "a.b.c"},
        ),
        (
            'select * from "a.b.c", o where x in (select y from d.e.f)',
            'select * from "a.b.c", o where x in (select y from "d.e.f" AS "f")',
            {"a.b.c": "a.b.c", "d.e.f": "d.e.f"},
        ),
        ('with "a.b.c" as (select 1 as x) select * from "a.b.c"',) * 2 + ({},),
        ("select 'from a.b.c' as x -- a.b.c", "select 'from a.b.c' as x -- a.b.c", {}),
        ("select * from 'a.b.csv'", "select * from 'a.b.csv'", {}),
    ],
)
def test_what_runs(sql: str, text: str, sources: dict[str, str]) -> None:
    found = read_full_names(sql, ["o"])
    assert found.text == text
    assert found.sources == sources


def test_a_declared_name_means_what_was_declared() -> None:
    assert read_full_names('select * from "a.b.c"', ["A.B.C"]).sources == {}


def test_places_are_those_of_the_users_text() -> None:
    sql = "select ä, x from a.b.c, d.e.f as k where wrong = 1"
    found = read_full_names(sql, [])
    assert found.text == 'select ä, x from "a.b.c" AS "c", "d.e.f" as k where wrong = 1'
    for word in ("ä", "x", ",", " as k", "wrong", "= 1"):
        assert found.place(found.text.index(word)) == sql.index(word), word
    # Inside a name: where it begins.
    assert found.place(found.text.index("b.c")) == sql.index("a.b.c")
    assert found.place(found.text.index("e.f")) == sql.index("d.e.f")
    assert found.place(len(found.text)) == len(sql)


def test_a_level_that_no_dataset_can_have_is_refused() -> None:
    with pytest.raises(InvalidName):
        read_full_names('select * from a."b\x07".c', [])
