"""How often the tests repeat what chance decides: a few rounds in every run, more of them for whoever searches.

`LAKEWARD_TEST_ROUNDS=10 make test ARGS=tests/equality` plays ten times as many.
"""

from __future__ import annotations

import os

TIMES = int(os.environ.get("LAKEWARD_TEST_ROUNDS") or 1)


def rounds(usual: int) -> int:
    """Return how many rounds to play of what plays so many in every run."""
    return usual * TIMES
