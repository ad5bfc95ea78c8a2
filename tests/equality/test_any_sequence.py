"""Any sequence of writes, copies, flips, builds and builds that fail gives the same on the four pairs of arms.

Hypothesis chooses a node and a sequence; all five strategies are played at once. A build that fails changes nothing,
and the next one reads what it would have read: no version is skipped, none comes twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st

from equality.cases import CASES
from support.pipeline_play import BREAKS, Play, random_write, row_of
from support.rounds import rounds

EXAMPLES, WINDOWS = rounds(3), 4
"""About half a minute on one core."""

STEPS = ("write", "write", "copy", "flip", "fail")


@settings(
    max_examples=EXAMPLES,
    # Not shrunk: each step makes real files and transactions, and a shrink runs hundreds.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    name=st.sampled_from(sorted(CASES)),
    windows=st.lists(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3), min_size=2, max_size=WINDOWS),
    full=st.sampled_from([None, 1, 2]),
    seed=st.integers(0, 2**32),
)
def test_any_sequence_is_the_same_on_every_pair_of_arms(
    play: Callable[..., Play], name: str, windows: list[list[str]], full: int | None, seed: int
) -> None:
    note(f"{name}, seed {seed}: {windows}, in full: {full}")
    event(name)
    chance, played = random.Random(seed), play(CASES[name])
    for source in ("a", "b"):
        played.write(source, "append", [row_of(source, key, chance) for key in chance.sample(range(5), 3)])
    for number, steps in enumerate(windows):
        for step in steps:
            source = chance.choice("aab")
            if step == "write":
                random_write(played, source, chance)
            elif step == "copy":
                played.copy(source)
            elif step == "flip":
                played.flip(source)
            else:
                played.fail(*chance.choice(BREAKS))
        played.build(full=number == full)
    # What one build in full would give is what all of them together gave, as far as its strategy says so.
    played.build(full=True)
