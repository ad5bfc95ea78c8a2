"""Each join through every kind of window gives the same on the four pairs of arms, as the other nodes do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from equality.cases import JOIN_CASES, strategies
from equality.history import play_history
from support.pipeline_play import Play


@pytest.mark.parametrize("name", JOIN_CASES)
def test_a_join_gives_the_same_on_every_pair_of_arms(play: Callable[..., Play], name: str) -> None:
    """The strategies that compute everything each time are left to the random sequences."""
    play_history(play(JOIN_CASES[name], strategies(name)))
