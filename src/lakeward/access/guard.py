"""Who acts now, and the one question whether they may: `require`.

It is asked below every way in, so that the API, the page, jobs and the command line against a server obey alike:

- looking up a name (`control.tree`): what somebody may not see is unknown to them;
- rows in and out (`storage.facade`);
- a change (`control.audit`): its line in the audit log is written, in the transaction that makes it, or it is not made.

Who opens a workspace by its database's own credentials is its owner, and may do all. A server says for each request who
acts (`acting`), and shuts the door for whatever runs besides (`closed`): a thread that nobody's name was carried into
may do nothing, instead of all.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

from lakeward.access.actions import ACTIONS
from lakeward.access.principal import NOBODY, OWNER, Place, Principal
from lakeward.errors import Forbidden
from lakeward.happenings import current

P = ParamSpec("P")
Result = TypeVar("Result")

_acting: ContextVar[Principal | None] = ContextVar("lakeward_principal", default=None)
_closed = 0
_alone: Principal | None = None


def principal() -> Principal:
    """Return who acts now."""
    return _acting.get() or _alone or (NOBODY if _closed else OWNER)


@contextmanager
def acting(who: Principal) -> Iterator[Principal]:
    """Let somebody act within the block, and in what it awaits; threads that it starts need `carried`."""
    if (around := current()) is not None:
        # So that the log says of a request who made it.
        around.facts["principal"] = who.name
    before = _acting.set(who)
    try:
        yield who
    finally:
        _acting.reset(before)


def itself() -> AbstractContextManager[Principal]:
    """Let the workspace itself act within the block: it does what somebody told it to who might, whoever comes now."""
    return acting(OWNER)


@contextmanager
def closed() -> Iterator[None]:
    """Within the block, and in every thread of this process, let nobody act whom `acting` has not named."""
    global _closed
    _closed += 1
    try:
        yield
    finally:
        _closed -= 1


def act_alone(who: Principal) -> None:
    """Let somebody act in all of this process from now on, whatever thread it is: it was made for them alone."""
    global _alone
    _alone = who


def carried(function: Callable[P, Result]) -> Callable[P, Result]:
    """Return a function that acts, in whatever thread it is called, for who acts now. It may be called side by side."""
    context = copy_context()

    def called(*args: P.args, **kwargs: P.kwargs) -> Result:
        # A context can be entered by one thread at a time.
        return context.copy().run(function, *args, **kwargs)

    return called


def may(action: str, place: Place = ()) -> bool:
    """Say whether who acts now may do an action of `ACTIONS` in a place."""
    role = principal().role_in(place)
    return role is not None and role >= ACTIONS[action]


def may_somewhere(action: str) -> bool:
    """Say whether who acts now may do an action anywhere at all."""
    return any(each.role >= ACTIONS[action] for each in principal().regions)


def sees(place: Place) -> bool:
    """Say whether who acts now may know that a place is there."""
    return principal().sees(place)


def require(action: str, place: Place = (), name: str | None = None) -> None:
    """Raise unless who acts now may do it.

    Args:
        action: one of `ACTIONS`.
        place: where; `()`: in the whole workspace.
        name: what people call that place.

    Raises:
        Forbidden: they may not; the error names the role that it takes.
    """
    if may(action, place):
        return
    where = name or ".".join(place)
    raise _forbidden(action, f"in {where}" if place else "in the whole workspace", where)


def require_somewhere(action: str) -> None:
    """Raise unless who acts now may do it anywhere at all; where, is then asked of whoever does it.

    Raises:
        Forbidden: they may not.
    """
    if not may_somewhere(action):
        raise _forbidden(action, "anywhere", "")


def _forbidden(action: str, where: str, place: str) -> Forbidden:
    lowest, who = ACTIONS[action], principal().name
    words = ["lakeward", "grant", "set", who, str(lowest), *(["--on", place] if place else [])]
    return Forbidden(
        f"{who} may not do {action} {where}: it takes the role {lowest}",
        safe="nothing was changed",
        next_step=f"an admin can grant it: `{shlex.join(words)}`",
        action=action,
        principal=who,
        role=str(lowest),
        where=place,
    )
