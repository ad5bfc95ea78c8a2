"""Each node through every kind of window gives the same on the four pairs of arms: a plain table.

After each build all outputs have equal rows, digests and counts, and those that the plain oracle tells.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from equality.cases import CASES, JOIN_CASES, strategies
from equality.history import play_history
from support.pipeline_play import Play


@pytest.mark.parametrize("name", [name for name in CASES if name not in JOIN_CASES])
def test_a_node_gives_the_same_on_every_pair_of_arms(play: Callable[..., Play], name: str) -> None:
    play_history(play(CASES[name], strategies(name)))
