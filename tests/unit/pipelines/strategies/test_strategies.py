"""Each strategy's verb, and what it takes."""

from __future__ import annotations

import pytest

from lakeward.pipelines.spec import strategy_classes
from lakeward.storage.verbs import VERBS

TABLE = {
    # name: (key needed, takes deltas, takes updated rows again, verb, verb of a rebuild)
    "append_always": (False, True, False, "append", "replace"),
    "append_new": (True, True, True, "append_new", "append_new"),
    "mirror": (True, False, False, "mirror", "mirror"),
    "replace": (False, False, False, "replace", "replace"),
    "snapshot_replace": (True, True, True, "upsert", "upsert"),
}


def test_these_are_the_strategies() -> None:
    assert list(strategy_classes()) == list(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_what_a_strategy_takes_and_does(name: str) -> None:
    kind = strategy_classes()[name]
    verbs = kind().verb(rebuild=False), kind().verb(rebuild=True)
    assert (kind.needs_key, kind.takes_delta, kind.takes_updates, *verbs) == TABLE[name]
    assert set(verbs) <= set(VERBS)
    assert kind.needs_key == VERBS[verbs[0]].keyed
