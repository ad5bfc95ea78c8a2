"""What was dropped ends over a REST catalog, too, which is never asked to delete a file, and may lose its answers."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psycopg
import pytest

from lakeward.testing.faulty_proxy import FAULTS
from support.trouble import Scene


@pytest.mark.parametrize("fault", ["500-after", "503-before"])
def test_purged_although_the_catalog_fails_at_first(scene: Scene, fault: str) -> None:
    ws = scene.workspace
    doomed, schema = scene.subject(born=[1, 2], schema=f"purged {fault}"), f"main.purged {fault}"
    root = Path(doomed.dataset.locate()["iceberg"]["location"].removeprefix("file://"))
    files = {path for path in root.rglob("*") if path.is_file()}
    ws.drop_schema(schema, cascade=True)
    _a_month_later(scene, root)
    failing = scene.proxy.inject(FAULTS[fault], method="DELETE", path="/tables/")
    first = ws.maintain(older_than=3.0)
    assert failing.hits == 1 and first.failures and f"dataset {doomed.dataset.name}" not in first.purged
    assert {path for path in root.rglob("*") if path.is_file()} == files, "files go after the entry, and by us alone"
    second = ws.maintain(older_than=3.0)
    assert (second.failures, second.notes) == ([], [])
    assert {f"dataset {doomed.dataset.name}", f"schema {schema}"} <= {*first.purged, *second.purged}
    assert not root.exists()
    deletions = [each.target for each in scene.proxy.seen if each.method == "DELETE" and "/tables/" in each.target]
    assert deletions and all(path.endswith("?purgeRequested=false") for path in deletions)


def _a_month_later(scene: Scene, root: Path) -> None:
    then = time.time() - 86_400
    for path in root.rglob("*"):
        os.utime(path, (then, then))
    with psycopg.connect(scene.workspace.database.libpq_url) as connection:
        connection.execute("UPDATE lakeward.drops SET dropped_at = now() - interval '30 days', undo_until = now()")
