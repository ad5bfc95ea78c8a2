"""Workspaces of before there were moves, drops and copies that wait are brought to the newest form, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config

import lakeward
from lakeward.control.db import Database
from lakeward.types.digest import Digest
from support.moves import COLUMNS

BEFORE = "m0010"
ROWS = [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]


def go_back(url: str) -> None:
    """Bring a database to the revision of before."""
    config = Config()
    config.set_main_option("script_location", "lakeward.control:migrations")
    with Database(url) as database, database.transaction() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, BEFORE)


def sent(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def content(workspace: lakeward.Workspace) -> dict[int, list[Digest]]:
    """Return the digests of the versions that datasets have, by the dataset's id."""
    found = workspace.datasets()
    return {each.record.id: [each.digest(version=version) for version in (1, 2)] for each in found}


def test_an_older_workspace_goes_on_and_a_newer_one_can_go_back(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    url = new_database()
    place = {"database_url": url, "warehouse": tmp_path / "warehouse"}
    with lakeward.open(**place) as workspace:
        for arm in ("postgres", "iceberg"):
            for name in ("kept", "dropped", "purged"):
                made = workspace.create_dataset(f"Main.Sales.{arm} {name}", COLUMNS, ["id"], arm=arm)
                made.write(ROWS, mode="append")
                made.write([{"id": 2, "note": "c"}], mode="upsert")
        before = content(workspace)
    go_back(url)
    with lakeward.open(**place) as workspace:
        assert content(workspace) == before
        purged = {workspace.dataset(f"Main.Sales.{arm} purged").record.id for arm in ("postgres", "iceberg")}
        for arm in ("postgres", "iceberg"):
            workspace.drop_dataset(f"Main.Sales.{arm} purged")
        sent(url, "UPDATE lakeward.drops SET dropped_at = now() - interval '9 days', undo_until = now()")
        assert len(workspace.maintain().purged) == 2
        for arm in ("postgres", "iceberg"):
            workspace.drop_dataset(f"Main.Sales.{arm} dropped")
        workspace.rename_dataset("Main.Sales.iceberg kept", "called anew")
        workspace.flip("Main.Sales.postgres kept").run("iceberg", until="backfill")
    sent(url, "UPDATE lakeward.datasets SET iceberg_table = 'other' WHERE name = 'called anew'")
    with pytest.raises(sqlalchemy.exc.DatabaseError, match="called otherwise than their datasets"):
        go_back(url)
    sent(url, "UPDATE lakeward.datasets SET iceberg_table = NULL")
    go_back(url)
    # What was dropped is there again, and is called otherwise; of what was purged, there is only the past.
    with lakeward.open(**place) as workspace:
        there = {each.record.id: each for each in workspace.datasets()}
        digests = {id_: [there[id_].digest(version=version) for version in (1, 2)] for id_ in before.keys() - purged}
        assert digests == {id_: found for id_, found in before.items() if id_ not in purged}
        workspace.flip("Main.Sales.postgres kept").run("iceberg")
        assert workspace.dataset("Main.Sales.postgres kept").arm == "iceberg"
        assert workspace.maintain().failures == []
