"""The first delta after a source went over to its other arm reads what it would have read before; so do later ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from equality.cases import CASES
from equality.history import A
from support.pipeline_oracle import TAKE_DELTAS
from support.pipeline_play import ARMS, Play


@pytest.mark.parametrize("name", ["transform", "UNION ALL"])
def test_deltas_go_on_over_a_flip(play: Callable[..., Play], name: str) -> None:
    played = play(CASES[name], TAKE_DELTAS)
    played.write("a", "append", A)
    played.write("b", "append", [(0, "zero")])
    played.build()
    played.write("a", "append", [(5, 1, 2, "z")])
    arms = {arm: played.held[arm, "a"].arm for arm in ARMS}
    played.flip("a")
    assert all(played.held[arm, "a"].arm != before for arm, before in arms.items())
    # Counts are compared too: a build that read everything anew would be found out by its rows_in.
    played.build()
    played.write("a", "append", [(6, 0, 3, None)])
    played.build()
    played.flip("a")
    played.write("a", "upsert", [(6, 0, 4, "later")])
    played.build()
