"""A long history of keyed writes on the Postgres arm: what is kept reads exactly, and what is not needed goes."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest

import lakeward
from support.past import GRACE, KEPT, Past

COLUMNS = {"id": "long", "note": "string"}
VERSIONS = 100


def _rows(past: Past, version: int | None = None) -> list[dict[str, Any]]:
    return past.dataset.to_arrow(version=version, identity=True).sort_by("__row_id").to_pylist()


def _stored(past: Past) -> int:
    with psycopg.connect(past.workspace.database.libpq_url) as connection:
        query = "SELECT count(*) FROM lakeward.dataset_rows WHERE dataset_id = %s"
        (count,) = connection.execute(query, (past.dataset.record.id,)).fetchone() or (None,)
    assert count is not None
    return int(count)


@pytest.mark.parametrize("verbs", [("upsert",), ("upsert", "mirror", "delete", "append", "append_new")])
def test_a_hundred_versions_then_maintain(ws: lakeward.Workspace, rng: random.Random, verbs: tuple[str, ...]) -> None:
    dataset = ws.create_dataset(f"main.kept.upserts{len(verbs)}", COLUMNS, primary_key=["id"])
    past = Past(ws, dataset, {})
    dataset.write([{"id": number, "note": "old"} for number in range(50)])
    dataset.verify()
    contents: dict[int, list[dict[str, Any]]] = {}
    for turn in range(VERSIONS):
        verb = verbs[turn % len(verbs)]
        ids = rng.sample(range(60), 40 if verb == "mirror" else 10)
        new: list[dict[str, Any]] = [{"id": number, "note": f"{turn} {number}"} for number in ids]
        if verb == "append":
            new = [{"id": 1000 + turn, "note": "appended"}]
        if verb == "delete":
            new = [{"id": number} for number in ids[:3]]
        version = dataset.write(new, mode=verb).version
        contents[version] = _rows(past)
        past.digests[version] = dataset.digest()
        assert past.dataset.verify().recorded == past.digests[version]
    kept = sorted(contents)[-KEPT:]
    assert {version: _rows(past, version) for version in kept} == {version: contents[version] for version in kept}
    before = _stored(past)
    # Versions expire first; what only they saw goes when nobody can be reading it any more.
    past.maintain()
    past.grow_old()
    past.maintain(grace=GRACE)
    past.assert_readable(kept)
    assert {version: _rows(past, version) for version in kept} == {version: contents[version] for version in kept}
    seen = {(row["__row_id"], row["__version"]) for version in kept for row in contents[version]}
    assert _stored(past) == len(seen) < before
