"""A warehouse in a directory of any name: what is a pattern or an escape elsewhere is part of the name here."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeward
from lakeward.errors import SettingsError


@pytest.mark.parametrize("name", ["two words", "50%", "%20", "[ab]*", "é😀", "it's", 'q"x', "a;b", "a&b=c"])
def test_any_directory_holds_a_warehouse(shared_url: str, tmp_path: Path, name: str) -> None:
    warehouse = tmp_path / name / "warehouse"
    with lakeward.open(tmp_path / "home", database_url=shared_url, warehouse=warehouse) as workspace:
        dataset = workspace.create_dataset(f"main.paths.n{len(name)}{ord(name[0])}", {"id": "long"}, arm="iceberg")
        dataset.write([{"id": 1}])
        dataset.write([{"id": 2}], "replace")
        assert dataset.to_arrow().to_pylist() == [{"id": 2}]
        assert dataset.to_arrow(version=1).to_pylist() == [{"id": 1}]
        assert dataset.digest().count == 1
    assert len(list(warehouse.rglob("*.parquet"))) == 2
    assert {path.name for path in tmp_path.iterdir()} <= {name, "home"}, "nothing is written beside it"


@pytest.mark.parametrize("name", ["a#b", "what?"])
def test_a_directory_that_an_address_can_not_name_is_refused(shared_url: str, tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match=r"can't hold Iceberg tables") as caught:
        lakeward.open(database_url=shared_url, warehouse=tmp_path / name)
    assert name in caught.value.message
    assert list(tmp_path.iterdir()) == []
