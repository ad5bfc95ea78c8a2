"""Where the Iceberg tables are: what a setting names, and where each table is below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeward.errors import SettingsError
from lakeward.storage.warehouse import ObjectPlace, table_location, warehouse_at, warehouse_uri


def test_places() -> None:
    assert warehouse_at("/a/../b") == warehouse_at("file:///b") == Path("/b").resolve()
    assert warehouse_at("s3://lake") == ObjectPlace("s3", "lake")
    assert warehouse_at("s3a://lake/house/one/") == ObjectPlace("s3a", "lake", "house/one")
    assert [warehouse_uri(warehouse_at(text)) for text in ("/b", "s3://lake/x/")] == ["file:///b", "s3://lake/x"]


@pytest.mark.parametrize(
    "text",
    [
        *("s3://", "s3:///x", "s3://key:canary@lake/x", "s3://lake/a//b", "s3://lake/../b", "s3://lake/./b"),
        *("s3://lake/canary?b", "s3://lake/canary#b", "s3://lake/canary*", "s3://lake/%2e%2e", "s3://la ke/canary"),
        *("gs://canary", "hdfs://canary/x", "https://canary/x"),
    ],
)
def test_s01_what_is_no_place_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(SettingsError) as raised:
        warehouse_at(text)
    assert (
        "canary" not in str(raised.value) and raised.value.next_step and raised.value.fields["setting"] == "warehouse"
    )


def test_a_table_has_a_place_of_its_own() -> None:
    slugs = ("main", "sales", "orders")
    assert table_location(Path("/w"), slugs, "1f") == "file:///w/main/sales/orders-1f"
    assert table_location(ObjectPlace("s3", "lake", "w"), slugs, "1f") == "s3://lake/w/main.sales/orders-1f"
