"""`lakeward dataset adopt`, and what `lakeward doctor` says of the catalog."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import lakeward
from support.commands import Run

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "note": ["a", "b"]})


@pytest.fixture
def legacy(run: Run, place: Path) -> None:
    """A table of another engine in the workspace's catalog."""
    assert run("doctor", "--probe").code == 0
    warehouse = (place.parent / "home" / "warehouse").as_uri()
    with lakeward.open() as workspace:
        catalog = SqlCatalog("lakeward", uri=workspace.database.sqlalchemy_url, warehouse=warehouse)
    catalog.create_namespace("legacy")
    catalog.create_table(("legacy", "orders"), ROWS.schema, properties={"format-version": "2"}).append(ROWS)
    catalog.close()


def test_adopts_once_and_tells_what_it_did(run: Run, legacy: None) -> None:
    arguments = ("dataset", "adopt", "legacy.orders", "--as", "shop.raw.orders", "--key", "id")
    rehearsed = run(*arguments, "--dry-run", "--output", "json").document
    assert len(rehearsed["actions"]) == 3
    assert run("dataset", "list", "--output", "json").document["datasets"] == []
    done = run(*arguments, "--output", "json").document
    assert (done["version"], done["rows"], done["primary_key"]) == (1, 2, ["id"])
    assert "nothing to do" in run(*arguments).out
    assert "version 2" in run(*arguments, "--add-identity").out
    wrong = run("dataset", "adopt", "legacy.order")
    assert wrong.code == 2 and "did you mean legacy.orders?" in wrong.err
    assert run("dataset", "adopt", "orders").code == 2


def test_doctor_knows_what_was_probed(run: Run, legacy: None) -> None:
    [catalog] = [each for each in run("doctor", "--output", "json").document["checks"] if each["name"] == "catalog"]
    assert catalog["ok"] and "moved by rename" in catalog["detail"] and catalog["next_step"] is None
