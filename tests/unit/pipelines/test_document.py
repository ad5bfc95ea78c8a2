"""Reading YAML with places, more strictly than YAML."""

from __future__ import annotations

import pytest

from lakeward.errors import SpecError
from lakeward.pipelines.document import read_document


def test_values_are_what_they_look_like() -> None:
    data, _ = read_document(
        "a: no\nb: 2020-01-01\nc: true\nd: 1_000\ne: 12\nf: 1.5\ng:\nh: '12'\non: [on, off]\ntrue: x\n", "a.yml"
    )
    assert data == {
        "a": "no",
        "b": "2020-01-01",
        "c": True,
        "d": "1_000",
        "e": 12,
        "f": 1.5,
        "g": None,
        "h": "12",
        "on": ["on", "off"],
        "true": "x",
    }


def test_places_of_keys_values_and_the_text_of_blocks() -> None:
    _, origin = read_document("a: 1\nb:\n  - x: |\n      text\n      more\n    y: 'one'\n", "a.yml")
    assert origin.at(("b", 0, "y")) == "a.yml:6"
    x, y = origin.place(("b", 0, "x")), origin.place(("b", 0, "y"))
    assert x is not None and (x.line, x.text_line) == (3, 4)
    assert y is not None and (y.line, y.column, y.text_line) == (6, 8, 6)
    assert origin.at(("b", 0, "missing")) == "a.yml:3"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, r"the key 'a' stands twice \(first in line 1\)"),
        ("a:\n  b: 1\n  'b': 2\n", 3, "the key 'b' stands twice"),
        ("a: [1, 2\nb: 3\n", 2, "not valid YAML"),
        ("a: b: c\n", 1, "not valid YAML"),
        ("a:\n\t- b\n", 2, "not valid YAML"),
        ("a: &x [1]\nb: *x\n", 1, "anchors"),
        ("a: !!python/object:os.system x\n", 1, "tag"),
        ("a: !mine x\n", 1, "tag"),
        ("? [a]\n: b\n", 1, "a key is text"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("- a\n", 1, "mapping"),
        ("text\n", 1, "mapping"),
        ("", 1, "empty"),
        ("# only a comment\n", 1, "empty"),
    ],
)
def test_what_is_refused_and_where(text: str, line: int, says: str) -> None:
    with pytest.raises(SpecError, match=says) as raised:
        read_document(text, "pipelines/a.yml")
    assert raised.value.exit_code == 2
    assert (raised.value.fields["file"], raised.value.fields["line"]) == ("pipelines/a.yml", line)
    assert raised.value.message.startswith(f"pipelines/a.yml:{line}: ")


def test_a_bomb_of_anchors_or_of_depth_ends_with_an_error() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
    )
    with pytest.raises(SpecError, match="anchors"):
        read_document(bomb, "a.yml")
    with pytest.raises(SpecError):
        read_document("a: " + "[" * 5_000 + "]" * 5_000, "a.yml")
