"""The navigation: which pages there are, in which order, and which of them somebody may open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeward.access.actions import ACTIONS
from lakeward.access.guard import may_somewhere


@dataclass(frozen=True)
class Place:
    """Where a page stands.

    Args:
        title: what it is called.
        href: where it is.
        order: pages stand in this order.
        action: one of `ACTIONS`; who may do it nowhere is not shown the page.
        others: what else paths begin with that belong to it.
    """

    title: str
    href: str
    order: int
    action: str
    others: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert self.action in ACTIONS, self.action

    def holds(self, path: str) -> bool:
        """Say whether a path is this page's, or below it."""
        return path == self.href or any(
            path.startswith(f"{each}/") for each in (self.href, *self.others) if each != "/"
        )


def shown(places: Sequence[Place]) -> list[Place]:
    """Return the pages that who asks now may open, in their order."""
    return sorted((each for each in places if may_somewhere(each.action)), key=lambda each: each.order)
