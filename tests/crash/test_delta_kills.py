"""I03: a delta build is killed; the next one reads exactly what had not been read, on every pair of arms.

How far an output has read is decided together with its rows: no version is skipped, and none comes twice.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import lakeward
from support.covering import covering
from support.crashes import Driver, content, unclean

ARMS = ("postgres", "iceberg")
STRATEGIES = ("append_always", "append_new", "snapshot_replace")
POINTS = (("compute", 3), ("prepare", 2), ("audit", 1), ("decide", 1), ("decide:committed", 1))
STANDS = ("decide:committed",)
"""Here the build stands, although nobody was told."""

PIPELINE = """\
pipeline: p
nodes:
  rows: {{source: {source}}}
  even: {{transform: "select id, note from rows where id % 2 = 0"}}
outputs:
"""

_numbers = itertools.count(1)


def batch(*ids: int) -> list[dict[str, object]]:
    return [{"id": number, "note": f"n{number}"} for number in ids]


def ids(dataset: lakeward.Dataset) -> list[int]:
    return sorted(number for number, _ in content(dataset))


@covering("point arm", "arm source")
@pytest.mark.parametrize("source", ARMS)
@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize(("point", "occurrence"), POINTS)
def test_i03_a_killed_delta_build_skips_nothing_and_repeats_nothing(
    ws: lakeward.Workspace, driver: Driver, tmp_path: Path, point: str, occurrence: int, arm: str, source: str
) -> None:
    schema = f"main.delta{next(_numbers)}"
    rows = ws.create_dataset(f"{schema}.rows", {"id": "long", "note": "string"}, ["id"], arm=source)
    rows.write(batch(1, 2, 3, 4))
    names = {strategy: f"{schema}.{strategy}" for strategy in STRATEGIES}
    outputs = [
        f"  - {{dataset: {name}, from: even, strategy: {strategy}, primary_key: [id], arm: {arm}}}\n"
        for strategy, name in names.items()
    ]
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "lakeward.toml").touch()
    (tmp_path / "pipelines" / "p.yml").write_text(PIPELINE.format(source=rows.name) + "".join(outputs))
    ws.apply(tmp_path)
    ws.build("p")
    rows.write(batch(5, 6))
    rows.write(batch(7, 8))
    assert driver.run(build="p", fault=["crash", point, occurrence]).killed()
    before, after = [2, 4], [2, 4, 6, 8]
    stands = point in STANDS
    for name in names.values():
        assert ids(ws.dataset(name)) == (after if stands else before)
    rows.write(batch(9, 10))
    answer = driver.run(build="p").answer()
    assert answer == {"rows_in": dict.fromkeys(names.values(), 1 if stands else 3)}
    assert unclean(ws, list(names.values())) == []
    for name in names.values():
        assert ids(ws.dataset(name)) == [2, 4, 6, 8, 10]
    assert ws.build("p")[0].up_to_date
