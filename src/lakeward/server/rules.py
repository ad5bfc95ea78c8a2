"""What it takes to use a route: every route states it, and a test fails for one that does not."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Depends, Request
from fastapi.params import Depends as Dependency

from lakeward.access.actions import ACTIONS
from lakeward.access.guard import require, require_somewhere
from lakeward.server.rooms import Here


@dataclass(frozen=True)
class Rule:
    """What a route needs; a dependency of it. Made by `needs`.

    Args:
        action: one of `ACTIONS`.
        of: the parameter of the path that names the dataset.
        anywhere: the role is enough wherever it is held: the route shows only what may be seen, or what it does is
            checked where it is done.
    """

    action: str
    of: str | None
    anywhere: bool

    def __call__(self, request: Request, rooms: Here) -> None:
        """Raise unless who asks may.

        Raises:
            Forbidden: they may not.
            UnknownObject: there is no such dataset that they may see.
        """
        if self.of is not None:
            record = rooms.workspace.tree.dataset(request.path_params[self.of])
            require(self.action, record.slugs, record.name)
        elif not self.anywhere:
            require(self.action)
        else:
            require_somewhere(self.action)


def needs(action: str, of: str | None = None, *, anywhere: bool = False) -> Dependency:
    """Return the dependency that a route states its rule by.

    Example:
        >>> needs("dataset.read", of="name").dependency
        Rule(action='dataset.read', of='name', anywhere=False)
    """
    assert action in ACTIONS, action
    dependency: Dependency = Depends(Rule(action, of, anywhere))
    return dependency
