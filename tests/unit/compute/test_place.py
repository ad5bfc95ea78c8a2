"""Where in a user's SQL something is wrong."""

from __future__ import annotations

import pytest

from lakeward.compute.place import SHOWN_WIDTH, excerpt, line_and_column, sql_error


@pytest.mark.parametrize(
    ("position", "expected"), [(0, (1, 1)), (6, (1, 7)), (7, (2, 1)), (10, (2, 4)), (99, (2, 5)), (-1, (1, 1))]
)
def test_line_and_column_are_counted_from_one(position: int, expected: tuple[int, int]) -> None:
    assert line_and_column("select\nfrom", position) == expected


def test_the_caret_stands_under_the_place_and_repeats_tabs() -> None:
    assert excerpt("select\n\tbad from t", 8) == "  2 | \tbad from t\n    | \t^"


def test_a_long_line_is_cut_around_the_place() -> None:
    shown, caret = excerpt("x" * 5_000 + "bad" + "y" * 5_000, 5_000).split("\n")
    assert len(shown) == len("  1 | ") + SHOWN_WIDTH
    assert shown[caret.index("^") :].startswith("bad")


def test_lines_count_on_from_where_the_text_stands_in_its_file() -> None:
    error = sql_error("unknown name", "select\nbad", 7, where="a.yml:11: node n", first_line=10)
    assert str(error) == "a.yml:11: node n: unknown name (line 11, column 1)\n  11 | bad\n     | ^"
    assert (error.fields["line"], error.fields["column"], error.fields["position"]) == (11, 1, 7)


def test_without_a_position_only_the_reason_is_told() -> None:
    error = sql_error("the query is empty", "", None, next_step="write one")
    assert str(error) == "the query is empty\nNext: write one"
    assert error.fields["position"] is None
