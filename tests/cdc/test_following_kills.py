"""A follower is killed at each step of the protocol; the next one skips nothing, and repeats nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeward
from cdc.followed import Shop
from support.crashes import Driver, unclean

POINTS = ("intent", "compute", "prepare", "audit", "decide", "decide:committed")


@pytest.fixture(scope="module")
def driver(ws: lakeward.Workspace, cdc_url: str, cdc_warehouse: Path) -> Iterator[Driver]:
    """Forks the followers that are to die."""
    with Driver(cdc_url, cdc_warehouse) as running:
        yield running


@pytest.mark.parametrize(("arm", "mode"), [("postgres", "append"), ("iceberg", "changes")])
def test_a_killed_follower_skips_nothing_and_repeats_nothing(
    ws: lakeward.Workspace, driver: Driver, shop: Shop, name: str, arm: str, mode: str
) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, note text); INSERT INTO {name} VALUES (0, 'n')")
    case = {"source": shop.name, "tables": [name], "mode": mode, "arm": arm}
    for point, begun in (("compute", 0), ("decide", 1), ("prepare", 1)):
        assert driver.run(follow=case, fault=["crash", point, 1]).killed(), point
        assert shop.state is not None and len(set(shop.slots())) == begun, "what the source keeps is known here"
    shop.follow(name, mode=mode)
    case = {"source": shop.name}
    # Rows of Postgres are visible at once, and nothing is published.
    points = POINTS if arm == "postgres" else (*POINTS, "publish")
    for number, point in enumerate(points, start=1):
        shop.run(f"INSERT INTO {name} VALUES ({number}, 'n')")
        assert driver.run(follow=case, fault=["crash", point, 1]).killed(), point
        stands = point in ("decide:committed", "publish")
        assert shop.dataset(name).record.row_count == number + stands, point
        assert shop.follow().changes == (0 if stands else 1), point
        ids = [row["id"] for row in shop.dataset(name).to_arrow().to_pylist()]
        assert sorted(ids) == list(range(number + 1)), point
    # The next write tidies up what was committed and not published.
    shop.run(f"INSERT INTO {name} VALUES (100, 'n')")
    assert shop.follow().changes == 1
    assert unclean(ws, [f"main.{shop.name}.{name}"]) == []
