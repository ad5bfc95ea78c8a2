"""Whether a build may be a delta, and what it reads of each source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeward.control.records import Window
from lakeward.control.source_windows import Happened, LastBuild
from lakeward.pipelines.document import read_document
from lakeward.pipelines.graph import Graph, read_graph
from lakeward.pipelines.spec import read_spec, strategy_classes
from lakeward.pipelines.windows import Asked, BuildWindows, decide

QUIET = Happened(versions=0, updated=0, deleted=0, replaced=False, adopted=False)
ADDED = replace(QUIET, versions=2)
ASKED = Asked(
    last=LastBuild(7, "f", {1: 3, 2: 1}),
    fingerprint="f",
    ids={"main.raw.orders": 1, "main.raw.customers": 2},
    heads={1: 5, 2: 4},
    happened={1: ADDED, 2: QUIET},
)


def graph(query: str = "select * from orders join customers using (id)") -> Graph:
    text = f"""
pipeline: p
nodes:
  orders: {{source: main.raw.orders}}
  customers: {{source: main.raw.customers, window: full}}
  query: {{transform: "{query}"}}
outputs: [{{dataset: a.b.c, from: query, strategy: replace}}]
"""
    return read_graph(read_spec(*read_document(text, "p.yml")))


def decided(strategy: str = "append_always", asked: Asked = ASKED, **query: str) -> BuildWindows:
    found = graph(**query)
    return decide(found, found.pipeline.spec.outputs[0], strategy_classes()[strategy](), asked)


def test_a_delta_reads_what_is_new_and_the_whole_of_what_is_declared_full() -> None:
    found = decided()
    assert (found.delta, found.rebuild, found.reason) == (True, False, "")
    assert found.sources["orders"].window == Window(3, 5)
    assert found.sources["orders"].reason == "2 new versions since the last build"
    assert found.sources["customers"].window == Window(0, 4)


@pytest.mark.parametrize(
    ("strategy", "asked", "reason"),
    [
        ("append_always", replace(ASKED, full=True), "asked for in full"),
        ("replace", ASKED, "replace needs every row"),
        ("mirror", ASKED, "mirror needs every row"),
        ("append_always", replace(ASKED, fingerprint="g"), "the pipeline is not the one of the last build"),
        ("append_always", replace(ASKED, last=LastBuild(7, "f", {1: 3})), "the last build read other datasets"),
        (
            "append_always",
            replace(ASKED, happened={1: replace(ADDED, updated=1), 2: QUIET}),
            "rows of main.raw.orders were updated, and append_always does not match rows by their key",
        ),
        (
            "snapshot_replace",
            replace(ASKED, happened={1: replace(ADDED, deleted=1), 2: QUIET}),
            "rows of main.raw.orders were deleted",
        ),
        (
            "snapshot_replace",
            replace(ASKED, happened={1: replace(ADDED, replaced=True), 2: QUIET}),
            "main.raw.orders was replaced",
        ),
        (
            "append_new",
            replace(ASKED, happened={1: replace(ADDED, adopted=True), 2: QUIET}),
            "main.raw.orders took in rows of another engine",
        ),
    ],
)
def test_what_forces_a_rebuild(strategy: str, asked: Asked, reason: str) -> None:
    found = decided(strategy, asked)
    assert (found.delta, found.rebuild, found.reason) == (False, True, reason)
    assert {each.window.low for each in found.sources.values()} == {0}


def test_the_first_build_is_no_rebuild() -> None:
    found = decided(asked=replace(ASKED, last=None))
    assert (found.delta, found.rebuild, found.reason) == (False, False, "the first build")


@pytest.mark.parametrize("strategy", ["snapshot_replace", "append_new"])
def test_updated_rows_are_no_matter_to_who_matches_by_key(strategy: str) -> None:
    assert decided(strategy, replace(ASKED, happened={1: replace(ADDED, updated=9), 2: QUIET})).delta


def test_what_happens_to_a_source_that_is_read_whole_is_no_matter() -> None:
    assert decided(asked=replace(ASKED, happened={1: ADDED, 2: replace(ADDED, replaced=True)})).delta


def test_a_query_that_is_not_linear_forces_a_rebuild() -> None:
    found = decided(query="select count(*) as n from orders")
    assert (found.delta, found.reason) == (False, "the last build read other datasets")
    asked = replace(ASKED, last=LastBuild(7, "f", {1: 3}))
    assert decided(asked=asked, query="select count(*) as n from orders").reason == "node query aggregates rows"
