"""What somebody may do where, by what was granted and what their token allows."""

from __future__ import annotations

import pytest

from lakeward.access.principal import NOBODY, OWNER, Grant, Place, Principal
from lakeward.access.roles import Role

SALES: Place = ("main", "sales")
ORDERS: Place = (*SALES, "orders")


@pytest.mark.parametrize("place", [(), ("main",), SALES, ORDERS], ids=str)
def test_a_role_holds_in_all_that_is_inside(place: Place) -> None:
    """And nowhere else."""
    who = Principal("ann", (Grant(Role.BUILDER, place),))
    assert who.role_in(ORDERS) is Role.BUILDER
    assert who.role_in(place) is Role.BUILDER
    assert place == () or who.role_in(place[:-1]) is None
    assert place == () or who.role_in((*place[:-1], "other")) is None


def test_the_highest_role_counts() -> None:
    """However many were granted, in whatever order."""
    who = Principal("ann", (Grant(Role.OPERATOR, ORDERS), Grant(Role.VIEWER), Grant(Role.BUILDER, SALES)))
    assert [who.role_in(each) for each in ((), SALES, ORDERS)] == [Role.VIEWER, Role.BUILDER, Role.OPERATOR]


def test_a_token_only_narrows() -> None:
    """It lets nobody do more, nor anything elsewhere."""
    who = Principal("ann", (Grant(Role.ADMIN), Grant(Role.VIEWER, ORDERS)), ceiling=Role.BUILDER, within=SALES)
    assert who.role_in(ORDERS) is Role.BUILDER
    assert who.role_in(()) is None
    assert Principal("ann", (Grant(Role.VIEWER, ORDERS),), within=SALES).role_in(SALES) is None


def test_what_leads_to_a_place_is_seen_and_what_stands_beside_it_is_not() -> None:
    """Else one could not get there by its name."""
    who = Principal("ann", (Grant(Role.VIEWER, ORDERS),))
    assert all(who.sees(each) for each in ((), ("main",), SALES, ORDERS))
    assert not who.sees((*SALES, "customers"))
    assert not who.sees(("other",))
    elsewhere = Principal("ann", (Grant(Role.VIEWER, ORDERS),), within=("other",))
    assert not elsewhere.sees(ORDERS)
    assert not elsewhere.sees(())


def test_the_owner_may_all_and_nobody_nothing() -> None:
    """The two ends."""
    assert OWNER.role_in(ORDERS) is Role.ADMIN
    assert NOBODY.role_in(()) is None
    assert not NOBODY.sees(())
