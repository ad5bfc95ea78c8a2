"""C01: a writer is killed at each step of a write to an object store: the old version or the new one, and no third."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.crashes import Driver, content, unclean
from support.lakes import Lake

POINTS = ("prepare:files", "prepare:deletes", "decide", "decide:committed", "publish")
OLD = [(number, "old") for number in range(8)]
NEW = [*OLD[:5], *((number, "new") for number in range(5, 10))]

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, open_lake: Callable[[str], Lake]) -> Path:
    """A file of settings by which another process reaches the store."""
    path: Path = tmp_path_factory.mktemp("killed") / "lakeward.toml"
    lines = [f'"{name}" = "{value}"' for name, value in open_lake("sql").catalog.items()]
    path.write_text("\n".join(["[catalog]", *lines]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def driver(open_lake: Callable[[str], Lake]) -> Iterator[Driver]:
    """Forks writers in the workspace of the SQL catalog."""
    lake = open_lake("sql")
    with Driver(lake.database_url, lake.warehouse) as running:
        yield running


@pytest.mark.parametrize("point", POINTS)
def test_c01_old_or_new(sql_lake: Lake, driver: Driver, settings: Path, point: str) -> None:
    workspace = sql_lake.workspace
    name = f"main.killed.d{next(_numbers)}"
    dataset = workspace.create_dataset(name, {"id": "long", "note": "string"}, ["id"], arm="iceberg")
    dataset.write([{"id": number, "note": note} for number, note in OLD])
    died = driver.run(write=[[name, "upsert", 5, 5, "new"]], fault=["crash", point, 1], settings=str(settings))
    assert died.killed(), died.event
    stands = point in ("decide:committed", "publish")
    assert content(dataset) == (NEW if stands else OLD)
    driver.run(recover=True, settings=str(settings)).answer()
    assert unclean(workspace, [name]) == []
    assert content(dataset) == (NEW if stands else OLD)
    again = driver.run(write=[[name, "upsert", 5, 5, "new"]], settings=str(settings)).answer()
    assert "versions" in again and content(dataset) == NEW
    assert dataset.verify().recorded == dataset.digest()
