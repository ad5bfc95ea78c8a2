"""How datasets stand, for people: which words and colours their states have, and which of them are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lakeward.control.glance import TROUBLE, Glance

COLOURS = {
    "diverged": "bad",
    "failing": "bad",
    "behind": "warn",
    "unpublished": "warn",
    "warned": "warn",
    "stale": "warn",
    "writing": "busy",
    "flipping": "busy",
    "fine": "good",
    "empty": "plain",
}
"""Of each state."""

MEANINGS = {
    "diverged": "another engine wrote to the Iceberg table: adopt its rows, or restore ours",
    "failing": "the last write failed; readers see the version before it",
    "behind": "the mirror has not the newest version",
    "unpublished": "other engines don't see the newest version yet",
    "warned": "an expectation that only warns has failed",
    "stale": "what it is built from has changed since",
    "writing": "somebody writes to it now",
    "flipping": "a flip to the other arm is under way",
    "fine": "nothing is wrong",
    "empty": "it was never written",
}
"""Of each state, in a sentence."""


def states(glance: Glance) -> tuple[str, ...]:
    """Return the states that a dataset is in, the worst first; one at least."""
    found = list(glance.trouble)
    if glance.writing_since is not None:
        found.append("writing")
    if glance.flipping_to is not None:
        found.append("flipping")
    return tuple(found) or (("fine",) if glance.version else ("empty",))


@dataclass(frozen=True)
class Counted:
    """How many datasets there are of each kind."""

    datasets: int
    rows: int
    by_state: Counter[str]
    by_arm: Counter[str]
    on_both: int

    @property
    def troubled(self) -> int:
        """How many kinds of trouble there are, each dataset counted for each."""
        return sum(self.by_state[each] for each in TROUBLE)


def counted(glances: Sequence[Glance]) -> Counted:
    """Count datasets."""
    return Counted(
        len(glances),
        sum(each.row_count for each in glances),
        Counter(state for each in glances for state in states(each)),
        Counter(each.arm for each in glances),
        sum(each.mirror is not None for each in glances),
    )


def chosen(glances: Sequence[Glance], words: str, state: str | None, within: str | None = None) -> list[Glance]:
    """Return those that are asked for.

    Args:
        glances: all.
        words: each of them is in the name, whatever its case.
        state: the one that they are in; None: any.
        within: the full name of a catalog or schema that they are in.
    """
    wanted = words.casefold().split()
    return [
        each
        for each in glances
        if (state is None or state in states(each))
        and (within is None or each.name.startswith(f"{within}."))
        and all(word in each.name.casefold() for word in wanted)
    ]


def worst_first(glances: Sequence[Glance]) -> list[Glance]:
    """Return them so that those come first that somebody has to look at; by name, where they are alike."""
    order = {name: place for place, name in enumerate(COLOURS)}
    return sorted(glances, key=lambda each: order[states(each)[0]])
