"""What counts in a fingerprint and what does not."""

from __future__ import annotations

import pytest

from lakeward.pipelines.document import read_document
from lakeward.pipelines.fingerprint import differences, fingerprint, parts
from lakeward.pipelines.spec import Pipeline, read_spec

TEXT = """
pipeline: p
nodes:
  o: {source: main.raw.orders}
  t: {transform: "select id, amount as total from o where amount > 1"}
outputs:
  - {dataset: main.m.x, from: t, strategy: replace, primary_key: [id]}
"""


def read(text: str) -> Pipeline:
    return read_spec(*read_document(text, "a.yml"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            '"select id, amount as total from o where amount > 1"',
            '"SELECT id, amount AS total  FROM o  WHERE amount>1; -- x"',
        ),
        ("primary_key: [id]", "primary_key: [id], allow_empty: false"),
        ("primary_key: [id]", "arm: iceberg, primary_key: [id]"),
        ("nodes:", "# a comment\nnodes:"),
    ],
    ids=["layout of SQL", "a default", "where it is created", "a comment"],
)
def test_what_does_not_count(old: str, new: str) -> None:
    assert fingerprint(read(TEXT)) == fingerprint(read(TEXT.replace(old, new)))


def test_the_order_of_nodes_does_not_count() -> None:
    lines = TEXT.split("\n")
    lines[3], lines[4] = lines[4], lines[3]
    assert fingerprint(read(TEXT)) == fingerprint(read("\n".join(lines)))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("amount > 1", "amount > 2", ["node t changed"]),
        ("main.raw.orders", "main.raw.others", ["source o changed"]),
        ("[id]", "[id, total]", ["output main.m.x changed"]),
        ("primary_key: [id]", "allow_empty: true, primary_key: [id]", ["output main.m.x changed"]),
        ("main.m.x", "main.m.y", ["output main.m.y added", "output main.m.x removed"]),
        ("  t:", "  u: {source: a.b.c}\n  t:", ["source u added"]),
    ],
)
def test_what_counts_and_how_it_is_told(old: str, new: str, words: list[str]) -> None:
    before, after = read(TEXT), read(TEXT.replace(old, new))
    assert fingerprint(before) != fingerprint(after)
    assert differences(parts(before), parts(after)) == words


def test_a_stored_pipeline_has_the_fingerprint_of_its_file() -> None:
    assert fingerprint(Pipeline.from_json(read(TEXT).to_json(), "stored")) == fingerprint(read(TEXT))
