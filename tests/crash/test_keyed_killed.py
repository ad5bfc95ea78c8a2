"""A process is killed in a keyed write to the Postgres arm, which is one transaction: nothing of it is left."""

from __future__ import annotations

import itertools

import psycopg
import pytest

import lakeward
from support.covering import covering
from support.crashes import Driver, content, unclean

VERBS = ("append_new", "upsert", "mirror")
POINTS = ("intent:opened", "prepare", "prepare:copy", "prepare:chunk", "audit", "decide", "decide:committed")
OLD = [(number, "old") for number in range(8)]
NEW = {
    "append_new": [*OLD, (8, "new"), (9, "new")],
    "upsert": [*OLD[:5], *((number, "new") for number in range(5, 10))],
    "mirror": [(number, "new") for number in range(5, 10)],
}

_numbers = itertools.count(1)


@covering("point", "verb")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("point", POINTS)
def test_c01_old_or_new(ws: lakeward.Workspace, driver: Driver, point: str, verb: str) -> None:
    name = f"main.crash.keyed{next(_numbers)}"
    dataset = ws.create_dataset(name, {"id": "long", "note": "string"}, primary_key=["id"])
    dataset.write([{"id": number, "note": note} for number, note in OLD])
    dataset.verify()
    before = _stored(dataset)
    died = driver.run(write=[[name, verb, 5, 5, "new"]], fault=["crash", point, 1])
    assert died.killed(), died.event
    stands = point == "decide:committed"
    assert content(dataset) == (NEW[verb] if stands else OLD)
    driver.run(recover=True).answer()
    assert unclean(ws, [name]) == []
    assert content(dataset) == (NEW[verb] if stands else OLD)
    assert sorted(dataset.to_arrow(version=1)["id"].to_pylist()) == [number for number, _ in OLD]
    assert set(dataset.to_arrow(version=1)["note"].to_pylist()) == {"old"}
    if not stands:
        assert _stored(dataset) == before
        assert "versions" in driver.run(write=[[name, verb, 5, 5, "new"]]).answer()
        assert content(dataset) == NEW[verb]
    assert dataset.verify().recorded == dataset.digest()


def _stored(dataset: lakeward.Dataset) -> list[tuple[object, ...]]:
    with psycopg.connect(dataset._rooms.database.libpq_url) as connection:
        return connection.execute(
            "SELECT row_id, row_index, version, until, key, data::text FROM lakeward.dataset_rows "
            "WHERE dataset_id = %s ORDER BY row_id, version",
            (dataset.record.id,),
        ).fetchall()
