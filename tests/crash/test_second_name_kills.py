"""A move by a second name is killed, or stopped for longer than its lease, at each step: somebody else finishes it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.storage.arms.iceberg.second_name import POINTS
from lakeward.testing.rest_catalog import Habits, RestCatalogServer
from support.crashes import Driver, content, unclean
from support.moves import to_its_home, warehouse_files

STEPS = ("move:opened", "move:begun", *POINTS, "move:relocated")
LEASE_SECONDS = 1.0

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalogServer]:
    root = tmp_path_factory.mktemp("names")
    habits = Habits(renames=False, deletes="unless_forbidden")
    with RestCatalogServer(f"sqlite:///{root / 'catalog.db'}", root, habits=habits) as running:
        yield running


@pytest.fixture(scope="module")
def place(
    postgres: EmbeddedPostgres, server: RestCatalogServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Where the workspace is, as the driver's cases name it."""
    root = tmp_path_factory.mktemp("names_home")
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier("crash_names")))
    settings = root / "lakeward.toml"
    settings.write_text(
        f"[ledger]\nlease_seconds = {LEASE_SECONDS}\n[iceberg]\nborn_in_place = false\n", encoding="utf-8"
    )
    return {
        "url": postgres.url.replace("/lakeward?", "/crash_names?", 1),
        "warehouse": str(root / "warehouse"),
        "catalog": {"type": "rest", "uri": server.url},
        "settings": str(settings),
    }


@pytest.fixture(scope="module")
def survivor(place: dict[str, Any]) -> Iterator[lakeward.Workspace]:
    """The workspace, as a process sees it that survives all the others."""
    with lakeward.open(
        database_url=place["url"],
        warehouse=Path(place["warehouse"]),
        catalog=place["catalog"],
        settings_file=place["settings"],
    ) as workspace:
        yield workspace


@pytest.fixture
def dataset(survivor: lakeward.Workspace) -> lakeward.Dataset:
    made = survivor.create_dataset(
        f"main.names.d{next(_numbers)}", {"id": "long", "note": "string"}, ["id"], arm="iceberg"
    )
    made.write([{"id": 0, "note": "old"}])
    return made


@pytest.fixture
def whole(survivor: lakeward.Workspace, server: RestCatalogServer, dataset: lakeward.Dataset) -> Callable[[bool], None]:
    """Checks that the table has one name, the one that is recorded, its rows and files, and takes new ones."""
    relocation, files = to_its_home(dataset), warehouse_files(dataset)

    def check(moved: bool) -> None:
        expected = relocation.target if moved else relocation.source
        found = {each for each in (relocation.source, relocation.target) if server.backing.table_exists(each.parts)}
        assert found == {expected} == {dataset.record.identifier}
        assert files.items() <= warehouse_files(dataset).items()
        dataset.write([{"id": 9, "note": "next"}])
        assert content(dataset) == [(0, "old"), (9, "next")]
        assert unclean(survivor, [dataset.name]) == []

    return check


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_move_is_finished(
    survivor: lakeward.Workspace,
    driver: Driver,
    place: dict[str, Any],
    dataset: lakeward.Dataset,
    whole: Callable[[bool], None],
    step: str,
) -> None:
    assert driver.run(**place, move=dataset.name, fault=["crash", step, 1]).killed()
    survivor.recover()
    whole(step != "move:opened")


@pytest.mark.parametrize("step", STEPS)
def test_a_stopped_move_is_taken_over_and_refused_when_it_wakes_up(
    survivor: lakeward.Workspace,
    driver: Driver,
    place: dict[str, Any],
    dataset: lakeward.Dataset,
    whole: Callable[[bool], None],
    step: str,
) -> None:
    relocation, moved = to_its_home(dataset), step != "move:opened"
    stopped = driver.run(**place, move=dataset.name, fault=["pause", step, 1])
    assert stopped.event == "stopped"
    # A writer that waits for the slot takes over, and writes to the new place.
    dataset.write([{"id": 1, "note": "meanwhile"}])
    assert dataset.record.identifier == (relocation.target if moved else relocation.source)
    if moved:
        # Under its old name again, it is at the mercy of whoever still wants to drop that.
        survivor.moving.move(dataset.record, relocation.back())
        moved = False
    dataset.write([{"id": 1}], mode="delete")
    answer = stopped.wake()
    assert answer.get("error") == "LeaseLost", answer
    whole(moved)
