"""A workspace on a Postgres that asks for a password, its catalog in another database, and a backup of it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import Diverged
from lakeward.wiring.backup import create_backup, restore_backup
from lakeward.wiring.doctor import examine
from support.backup_scene import COLUMNS, digests
from support.passwords import outsider


def test_it_is_restored_into_another_database_and_the_catalog_that_has_moved_on_is_adopted(
    postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    with outsider(postgres, "backed_up", "brought_back", "catalog") as (old, new, catalog):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(old.replace(":a", ":b", 1))
        uri = catalog.replace("postgresql:", "postgresql+psycopg:", 1)
        elsewhere = {"warehouse": str(tmp_path / "warehouse"), "catalog": {"type": "sql", "uri": uri}}
        with lakeward.open(tmp_path / "old", database_url=old, **elsewhere) as workspace:
            rows, table = (
                workspace.create_dataset(f"main.kept.{arm}", COLUMNS, ["id"], arm=arm)
                for arm in ("postgres", "iceberg")
            )
            for each in (rows, table):
                each.write([{"id": number, "note": "kept"} for number in range(100)])
            before = digests(workspace)
            backup = create_backup(workspace, tmp_path / "lakeward.backup")
            table.write([{"id": 100, "note": "later"}], mode="upsert")
        flags = {"home": tmp_path / "new", "database_url": new, **elsewhere}
        assert restore_backup(flags, Path(backup.file)).missing == {}
        assert examine(flags).ok
        with lakeward.open(**flags) as workspace:
            assert digests(workspace) == before
            restored = workspace.dataset(table.name)
            with pytest.raises(Diverged):
                restored.write([{"id": 101, "note": "too early"}], mode="upsert")
            restored.adopt()
            assert restored.write([{"id": 101, "note": "in time"}], mode="upsert").row_count == 102
            assert sorted(restored.to_arrow(where="id >= 100")["note"].to_pylist()) == ["in time", "later"]
