"""Delta builds of a real workspace: what they read, what they write, and what forbids them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from lakeward.errors import ComputeError, NotIncremental
from lakeward.pipelines.project import Project

YAML = """\
pipeline: p
nodes:
  orders: {{source: main.raw.orders}}
  big: {{transform: "select id, v * 2 as v from orders where v > 1"}}
outputs:
  - {{dataset: main.m.out, from: big, strategy: {strategy}, primary_key: [id], arm: {arm}}}
"""


def rows(*ids: int, v: int | None = None) -> list[dict[str, int]]:
    return [{"id": number, "v": number if v is None else v} for number in ids]


@pytest.fixture(params=["postgres", "iceberg"])
def arm(request: pytest.FixtureRequest) -> str:
    """The arm of the source; the output is on the other one."""
    return str(request.param)


@pytest.fixture
def orders(workspace: lakeward.Workspace, arm: str) -> lakeward.Dataset:
    made = workspace.create_dataset("main.raw.orders", {"id": "long", "v": "long"}, ["id"], arm=arm)
    made.write(rows(1, 2, 3))
    return made


@pytest.fixture
def apply(
    workspace: lakeward.Workspace, project: Callable[..., Project], arm: str, orders: lakeward.Dataset
) -> Callable[..., lakeward.Dataset]:
    """Applies the pipeline with a strategy, builds it, and returns its dataset."""

    def applied(strategy: str, **change: str) -> lakeward.Dataset:
        text = YAML.format(strategy=strategy, arm="iceberg" if arm == "postgres" else "postgres")
        for old, new in change.items():
            text = text.replace({"transform": "v > 1", "output": "primary_key: [id]"}[old], new)
        workspace.pipelines.apply(project(a_yml=text))
        workspace.build("p")
        return workspace.dataset("main.m.out")

    return applied


def content(dataset: lakeward.Dataset) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in dataset.to_arrow().to_pylist())


@pytest.mark.parametrize("strategy", ["append_always", "append_new", "snapshot_replace"])
def test_only_what_is_new_is_read_and_written(
    workspace: lakeward.Workspace, apply: Callable[..., lakeward.Dataset], orders: lakeward.Dataset, strategy: str
) -> None:
    out = apply(strategy)
    assert content(out) == [(2, 4), (3, 6)]
    orders.write(rows(4, 5))
    [build] = workspace.build("p")
    assert (build.transactions[0].rows_in, build.transactions[0].rows_added) == (2, 2)
    assert content(out) == [(2, 4), (3, 6), (4, 8), (5, 10)]
    assert workspace.build("p")[0].up_to_date


def test_i02_what_gives_no_row_is_read_once(
    workspace: lakeward.Workspace, apply: Callable[..., lakeward.Dataset], orders: lakeward.Dataset
) -> None:
    out = apply("append_always")
    orders.write(rows(9, v=0))
    [build] = workspace.build("p")
    assert (build.transactions[0].rows_in, out.version) == (0, 2)
    assert workspace.build("p")[0].up_to_date
    orders.write(rows(4))
    assert workspace.build("p")[0].transactions[0].rows_in == 1
    assert content(out) == [(2, 4), (3, 6), (4, 8)]


def test_a_first_delta_after_a_copy_and_a_compaction_reads_the_same_rows(
    workspace: lakeward.Workspace, apply: Callable[..., lakeward.Dataset], orders: lakeward.Dataset, arm: str
) -> None:
    out = apply("append_always")
    orders.write(rows(4))
    orders.copy_to("iceberg" if arm == "postgres" else "postgres")
    assert workspace.build("p")[0].transactions[0].rows_in == 1
    assert content(out) == [(2, 4), (3, 6), (4, 8)]


def test_updated_rows_reach_who_matches_by_key(
    workspace: lakeward.Workspace, apply: Callable[..., lakeward.Dataset], orders: lakeward.Dataset
) -> None:
    out = apply("snapshot_replace")
    orders.write(rows(3, v=30), mode="upsert")
    [build] = workspace.build("p")
    assert (build.transactions[0].rows_in, build.transactions[0].rows_updated) == (1, 1)
    assert content(out) == [(2, 4), (3, 60)]


def test_updated_rows_make_who_only_appends_start_over(
    workspace: lakeward.Workspace, apply: Callable[..., lakeward.Dataset], orders: lakeward.Dataset
) -> None:
    out = apply("append_always")
    orders.write(rows(3, v=30), mode="upsert")
    [build] = workspace.build("p")
    assert build.transactions[0].verb == "replace"
    assert content(out) == [(2, 4), (3, 60)]


def test_rows_that_are_not_given_any_more_stay_with_snapshot_replace_and_go_with_mirror(
    workspace: lakeward.Workspace, apply: Callable[..., lakeward.Dataset], orders: lakeward.Dataset
) -> None:
    out = apply("snapshot_replace")
    orders.write([{"id": 2}], mode="delete")
    workspace.build("p")
    assert content(out) == [(2, 4), (3, 6)]
    apply("mirror")
    assert content(out) == [(3, 6)]


def test_a_changed_pipeline_computes_everything(apply: Callable[..., lakeward.Dataset]) -> None:
    out = apply("append_always")
    apply("append_always", transform="v > 2")
    assert content(out) == [(3, 6)]


def test_a_required_delta_that_is_not_possible_changes_nothing(
    workspace: lakeward.Workspace, apply: Callable[..., lakeward.Dataset], orders: lakeward.Dataset
) -> None:
    out = apply("append_always", output="require_incremental: true")
    orders.write(rows(4), mode="replace")
    with pytest.raises(
        NotIncremental, match=r"output main\.m\.out: a delta is required.*main\.raw\.orders was replaced"
    ):
        workspace.build("p")
    assert (content(out), out.version) == ([(2, 4), (3, 6)], 1)
    workspace.build("p", full=True)
    assert content(out) == [(4, 8)]


def test_i03_a_build_that_fails_skips_nothing(
    workspace: lakeward.Workspace, apply: Callable[..., lakeward.Dataset], orders: lakeward.Dataset
) -> None:
    out = apply("append_always", transform="v > 1 and (v <> 5 or error('bad') is null)")
    orders.write(rows(4, 5))
    with pytest.raises(ComputeError):
        workspace.build("p")
    assert out.version == 1
    orders.write([{"id": 5}], mode="delete")
    orders.write(rows(6))
    workspace.build("p")
    assert content(out) == [(2, 4), (3, 6), (4, 8), (6, 12)]
