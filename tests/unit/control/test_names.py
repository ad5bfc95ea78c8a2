"""Full names: written as people write them, read back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeward.control.names import DatasetName, quote_level
from lakeward.errors import InvalidName

LEVELS = st.text(
    st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from(".\"' /\\;%"), min_size=1, max_size=20
).filter(lambda level: level.strip() != "")


@given(LEVELS, LEVELS, LEVELS)
def test_text_form_reads_back_as_the_same_name(catalog: str, schema: str, dataset: str) -> None:
    name = DatasetName(catalog, schema, dataset)
    assert DatasetName.parse(str(name)) == name


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("main.sales.orders", ("main", "sales", "orders")),
        (" main . sales . orders ", ("main", "sales", "orders")),
        ('main."emea.north".orders', ("main", "emea.north", "orders")),
        ("main.emea / north.orders", ("main", "emea / north", "orders")),
        ('m.s."say ""hi"""', ("m", "s", 'say "hi"')),
        ('m.s." padded "', ("m", "s", " padded ")),
        ('"../../esc"."..".x', ("../../esc", "..", "x")),
        ("m.s.x'; drop table t; --", ("m", "s", "x'; drop table t; --")),
        ('m.s."x""; drop table t; --"', ("m", "s", 'x"; drop table t; --')),
        ("m.s.日本 🚢", ("m", "s", "日本 🚢")),
        ("m.s.שלום", ("m", "s", "שלום")),
        ("m.s.a\u200bb", ("m", "s", "a\u200bb")),
    ],
)
def test_g05_levels_stay_apart(text: str, levels: tuple[str, str, str]) -> None:
    assert DatasetName.parse(text) == DatasetName(*levels)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders",
        "sales.orders",
        "a.b.c.d",
        "a..c",
        ".b.c",
        "a.b.",
        "a. .c",
        'a."".c',
        'a."b.c',
        'a.b".c',
        'a."b"x.c',
        "a.b.\u3000",
    ],
)
def test_what_is_not_three_levels_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(InvalidName, match="full name") as caught:
        DatasetName.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("character", ["\0", "\n", "\t", "\x1b", "\x7f", "\x85", "\x9f", "\ud800", "\udfff"])
@pytest.mark.parametrize("place", range(3))
def test_s01_control_characters_and_lone_surrogates_are_refused_at_every_level(character: str, place: int) -> None:
    levels = ["a", "b", "c"]
    levels[place] = f"x{character}y"
    with pytest.raises(InvalidName, match="control character") as caught:
        DatasetName(*levels)
    str(caught.value).encode()  # it can be printed
    caught.value.to_json()["message"].encode()  # type: ignore[attr-defined]
    str(caught.value.fields["name"]).encode()
    with pytest.raises(InvalidName):
        DatasetName.parse(".".join(f'"{level}"' for level in levels))


@pytest.mark.parametrize(
    ("level", "quoted"), [("a b", "a b"), ("a.b", '"a.b"'), ('a"b', '"a""b"'), (" a", '" a"'), ("a'b", "a'b")]
)
def test_level_is_quoted_only_where_it_must(level: str, quoted: str) -> None:
    assert quote_level(level) == quoted
