"""A workspace from before keyed writes: its rows have no key numbers until the first of them."""

from __future__ import annotations

from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config

import lakeward
from lakeward.control import migrations
from lakeward.control.db import Database

COLUMNS = {"id": "long", "note": "string"}
OLD = [{"id": number, "note": "old"} for number in range(5)]


def go_back(url: str) -> None:
    """Take the database back to what an older Lakeward knows."""
    config = Config()
    config.set_main_option("script_location", migrations.__path__[0])
    with Database(url) as database, database.transaction() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "m0002")


def test_rows_of_an_older_lakeward_are_matched(database_url: str, tmp_path: Path) -> None:
    with lakeward.open(tmp_path / "home", database_url=database_url) as workspace:
        keyed = workspace.create_dataset("main.old.keyed", COLUMNS, primary_key=["note", "id"])
        keyed.write(OLD)
        keyed.write(OLD, mode="replace")
        keyed.write([{"id": 7, "note": "appended"}])
        workspace.create_dataset("main.old.plain", COLUMNS).write(OLD)
        workspace.create_dataset("main.old.empty", COLUMNS, primary_key=["id"])
    go_back(database_url)
    with lakeward.open(tmp_path / "home", database_url=database_url) as workspace:
        with psycopg.connect(database_url) as connection:
            marks = "SELECT name, unnumbered_to FROM lakeward.datasets ORDER BY name"
            assert connection.execute(marks).fetchall() == [("empty", 0), ("keyed", 3), ("plain", 0)]
        dataset = workspace.dataset("main.old.keyed")
        written = dataset.write([OLD[3], {"id": 7, "note": "appended"}, {"id": 8, "note": "new"}], mode="upsert")
        assert (written.rows_added, written.rows_unchanged, written.row_count) == (1, 2, 7)
        assert workspace.dataset("main.old.empty").write(OLD, mode="upsert").rows_added == 5
        with psycopg.connect(database_url) as connection:
            assert {mark for _, mark in connection.execute(marks)} == {0}
        assert dataset.write([OLD[2]], mode="delete").rows_deleted == 1
        assert dataset.to_arrow(version=1).num_rows == dataset.to_arrow(version=2).num_rows == 5
