"""What a pipeline file may say, and what is said about what it may not."""

from __future__ import annotations

import json

import pytest

from lakeward.errors import SpecError
from lakeward.pipelines.document import read_document
from lakeward.pipelines.nodes import SourceNode, TransformNode
from lakeward.pipelines.spec import Pipeline, read_spec

GOOD = """\
pipeline: orders_daily
nodes:
  orders: {source: main.raw.orders}
  clean:
    transform: |
      select *
      from orders
outputs:
  - dataset: main.analytics.orders
    from: clean
    arm: iceberg
    strategy: replace
    primary_key: [id]
"""


def read(text: str) -> Pipeline:
    return read_spec(*read_document(text, "pipelines/a.yml"))


def test_the_pinned_form_is_read() -> None:
    spec = read(GOOD).spec
    assert spec.pipeline == "orders_daily"
    assert spec.nodes == {
        "orders": SourceNode(source="main.raw.orders"),
        "clean": TransformNode(transform="select *\nfrom orders\n"),
    }
    output = spec.outputs[0]
    assert (output.dataset, output.from_, output.arm) == ("main.analytics.orders", "clean", "iceberg")
    assert (output.strategy, output.primary_key, output.allow_empty) == ("replace", ["id"], False)


def test_a_stored_spec_reads_back_as_the_same() -> None:
    pipeline = read(GOOD)
    stored = json.loads(json.dumps(pipeline.to_json()))
    assert stored["outputs"][0]["from"] == "clean"
    assert Pipeline.from_json(stored, "stored").spec == pipeline.spec


def test_dataset_names_are_kept_in_one_form() -> None:
    text = GOOD.replace("main.raw.orders", '\'"main". raw ."or.ders"\'')
    assert read(text).sources == {"orders": 'main.raw."or.ders"'}


@pytest.mark.parametrize(
    ("old", "new", "line", "says", "hint"),
    [
        (
            "pipeline:",
            "pipelin:",
            1,
            "unknown key 'pipelin'; there are pipeline, nodes, outputs",
            "did you mean pipeline?",
        ),
        ("pipeline: orders_daily\n", "", 1, "'pipeline' is missing", None),
        ("orders_daily", "", 1, "the name of a pipeline is empty, and should be text", None),
        ("orders_daily", "12", 1, "the name of a pipeline is 12, and should be text", None),
        (
            "{source: main",
            "{sources: main",
            3,
            "unknown kind 'sources'; there are source, transform",
            "did you mean source?",
        ),
        ("{source: main.raw.orders}", "{join: {left: a}}", 3, "'right' is missing", "add `right: …`"),
        (
            "{source: main.raw.orders}",
            "{ruby: {}}",
            3,
            "unknown kind 'ruby'; there are source, transform, join, split, model",
            None,
        ),
        ("{source: main.raw.orders}", "main.raw.orders", 3, "should be a mapping: a kind of node", None),
        ("{source: main.raw.orders}", "{}", 3, "node 'orders' has no kind", None),
        ("{source: main.raw.orders}", "{source: 12}", 3, "'source' is 12, and should be text", 'source: "12"'),
        ("{source: main.raw.orders}", "{source: }", 3, "'source' is empty, and should be text", None),
        (
            "{source: main.raw.orders}",
            "{source: raw.orders}",
            3,
            "'raw.orders' is not a dataset's full name",
            "catalog.schema",
        ),
        ("{source: main.raw.orders}", "{source: a.b.c, transform: x}", 3, "is source, transform at once", None),
        ("{source: main.raw.orders}", "{source: a.b.c, window: x}", 3, "'window' is 'x', and should be", None),
        ("  clean:", "  Orders:", 4, "nodes 'orders' and 'Orders' differ only in case", "rename"),
        ("  clean:", "  'a\\x01b': {source: a.b.c}\n  clean:", 4, None, None),
        ("from: clean", "from: cleen", 10, "unknown node 'cleen'; there are orders, clean", "did you mean clean?"),
        (
            "strategy: replace",
            "strategy: replase",
            12,
            "unknown strategy 'replase'; there are append_always, append_new, mirror, replace, snapshot_replace",
            "did you mean replace?",
        ),
        (
            "strategy: replace\n    primary_key: [id]",
            "strategy: snapshot_replace",
            12,
            "strategy 'snapshot_replace' needs a 'primary_key'",
            None,
        ),
        ("    strategy: replace\n", "", 9, "'strategy' is missing", "strategy: …"),
        (
            "arm: iceberg",
            "arm: icebreg",
            11,
            "unknown arm 'icebreg'; there are postgres, iceberg",
            "did you mean iceberg?",
        ),
        ("primary_key: [id]", "primary_key: id", 13, "'primary_key' is 'id', and should be a list", None),
        ("primary_key: [id]", "primary_key: [id, id]", 13, "column 'id' is named twice", None),
        ("primary_key: [id]", "primary_keys: [id]", 13, "unknown key 'primary_keys'", "did you mean primary_key?"),
        ("primary_key: [id]", "expectation: []", 13, "unknown key 'expectation'", None),
        ("primary_key: [id]", "allow_empty: 1", 13, "'allow_empty' is 1, and should be true or false", None),
        (
            "dataset: main.analytics.orders",
            "dataset: main.raw.orders",
            9,
            "is an output and also the source 'orders'",
            "another",
        ),
        (
            "dataset: main.analytics.orders",
            "dataset: main.RAW.orders",
            9,
            "is an output and also the source 'orders'",
            None,
        ),
    ],
)
def test_wrong_specs_are_told_with_line_and_nearest_name(
    old: str, new: str, line: int, says: str | None, hint: str | None
) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if says is None:
        read(text)  # The control: single quotes keep the backslash, so this is an ordinary, odd name.
        return
    with pytest.raises(SpecError) as raised:
        read(text)
    error = raised.value
    assert says in error.message
    assert (error.fields["file"], error.fields["line"]) == ("pipelines/a.yml", line)
    assert error.message.startswith(f"pipelines/a.yml:{line}: ")
    first = error.parts[0] if error.parts else error
    assert hint is None or hint in (first.next_step or "")
    assert first.next_step


@pytest.mark.parametrize("name", ["a\\x01b", "a\\nb", "a\\u007f", " ", "x" * 300])
def test_n01_names_that_cannot_be_stored_are_refused_at_declaration(name: str) -> None:
    with pytest.raises(SpecError, match="name"):
        read(GOOD.replace("  clean:", f'  "{name}":').replace("from: clean", f'from: "{name}"'))


def test_two_outputs_into_one_dataset_are_refused() -> None:
    second = "  - {dataset: main.Analytics.orders, from: orders, strategy: replace}\n"
    with pytest.raises(SpecError, match="two outputs write") as raised:
        read(GOOD + second)
    assert raised.value.fields["line"] == 14


def test_no_nodes_or_no_outputs_are_refused() -> None:
    with pytest.raises(SpecError, match="'nodes' is empty"):
        read("pipeline: a\nnodes: {}\noutputs: [{dataset: a.b.c, from: x, strategy: replace}]\n")
    with pytest.raises(SpecError, match="at least one output"):
        read("pipeline: a\nnodes: {x: {source: a.b.c}}\noutputs: []\n")
