"""Who acts, in this thread and in those that it starts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from lakeward.access.actions import ACTIONS
from lakeward.access.guard import acting, carried, closed, may, may_somewhere, principal, require
from lakeward.access.principal import NOBODY, OWNER, Grant, Principal
from lakeward.access.roles import Role
from lakeward.errors import Forbidden

ANN = Principal("ann", (Grant(Role.BUILDER, ("main",)),))


def test_a_workspace_that_was_opened_directly_is_its_owners() -> None:
    """Its database's credentials are all that there is."""
    assert principal() is OWNER
    assert all(may(action) for action in ACTIONS)


def test_one_acts_within_the_block_only() -> None:
    """Also where it ends with an error."""
    with pytest.raises(ZeroDivisionError), acting(ANN):
        assert principal() is ANN
        raise ZeroDivisionError
    assert principal() is OWNER


def test_a_thread_acts_for_whom_it_was_started() -> None:
    """Where their name was carried there; side by side, too."""
    both = Barrier(2, timeout=10)

    def who() -> Principal:
        both.wait()
        return principal()

    with closed(), ThreadPoolExecutor(2) as pool:
        with acting(ANN):
            named = carried(who)
            bare = pool.submit(principal)
        assert bare.result() is NOBODY
        assert [each.result() for each in [pool.submit(named), pool.submit(named)]] == [ANN, ANN]
    assert principal() is OWNER


def test_what_one_may_not_do_is_named() -> None:
    """With who, where, and the role that it takes."""
    with acting(ANN):
        require("dataset.write", ("main", "sales", "orders"))
        assert may_somewhere("dataset.write")
        assert not may_somewhere("flip.run")
        with pytest.raises(Forbidden, match=r"ann may not do flip\.run in main\.Sales\.o: it takes the role operator"):
            require("flip.run", ("main", "sales", "o"), "main.Sales.o")
        with pytest.raises(Forbidden, match=r"ann may not do pipeline\.apply in the whole workspace"):
            require("pipeline.apply")
