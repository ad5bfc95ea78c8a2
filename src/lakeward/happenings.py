"""What goes on in this process, told to whoever listens: metrics, traces, events of lineage, and the lines of the log.

The one place where work says that it begins and ends. Work does not know who listens, and is not held up by it: a
listener keeps what it was told, and sends it elsewhere in a thread of its own. Listeners are of the process, like those
of a log: a workspace has nothing to hand down for their sake.

| name | what it is | facts |
|---|---|---|
| `request` | a request to the server | `method`, `route`, `request`, `status` |
| `build` | a pipeline, or one query, that is run | `pipeline`, `inputs` (versions by dataset), `outputs`, `tree` |
| `sync` | a source that is synced | `source`, `rows` |
| `follow.batch` | changes of a source that are written | `source`, `rows` |
| `write` | a write to one or more datasets | `dataset`, `build`, `writer` |
| `write.intent` … `write.publish` | its steps, see `lakeward.storage.protocol` | `dataset` |
| `flip.stage`, `flip.undo` | a stage of a flip that runs, or is undone | `dataset`, `stage` |
| `job` | a job of a worker | `job`, `task` |
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Happening:
    """A piece of work, for the length of a block.

    Args:
        name: what it is; see the module.
        facts: about it; more may be added while it goes on.

    Example:
        >>> with happening("sync", source="shop") as sync:
        ...     with happening("write", dataset="main.sales.orders"):
        ...         context()["source"], context()["dataset"]
        ...     sync.facts["rows"] = 3
        ('shop', 'main.sales.orders')
    """

    def __init__(self, name: str, facts: dict[str, Any]) -> None:
        self.name = name
        self.facts = facts
        self.id = uuid.uuid4()
        self.around: Happening | None = None
        """What it is a part of."""
        self.result: Any = None
        """What came of it, where it is a call that is told of."""
        self.error: BaseException | None = None
        """What it failed by."""
        self.seconds = 0.0
        """How long it took, once it has ended."""
        self._listeners: tuple[Listener, ...] = ()

    def __enter__(self) -> Happening:
        self.around = _current.get()
        self._listeners = _listeners
        self._token = _current.set(self)
        self._started = time.perf_counter()
        for each in self._listeners:
            each.begun(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.perf_counter() - self._started
        self.error = error
        _current.reset(self._token)
        for each in reversed(self._listeners):
            each.ended(self)


class Listener(Protocol):
    """Is told of everything that happens, in the thread where it does. It returns soon, and raises nothing."""

    def begun(self, happening: Happening) -> None:
        """Hear that something begins."""

    def ended(self, happening: Happening) -> None:
        """Hear that it has ended, well or with an error."""


def happening(name: str, **facts: Any) -> Happening:
    """Return what tells, as a context manager, that something happens."""
    return Happening(name, facts)


def told(
    name: str, about: Callable[..., dict[str, Any]] | None = None
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Let every call of a function be told of.

    Args:
        name: what it is.
        about: takes the same arguments, and returns the facts.
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @wraps(function)
        def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
            with Happening(name, about(*arguments, **named) if about is not None else {}) as each:
                each.result = result = function(*arguments, **named)
                return result

        return run

    return decorate


def listen(listener: Listener) -> Callable[[], None]:
    """Tell a listener of all that begins from now on; return what ends that."""
    global _listeners
    _listeners = (*_listeners, listener)

    def end() -> None:
        global _listeners
        _listeners = tuple(each for each in _listeners if each is not listener)

    return end


def current() -> Happening | None:
    """Return what goes on around the caller, the innermost."""
    return _current.get()


def context() -> dict[str, Any]:
    """Return the facts of all that goes on around the caller; those of the innermost count."""
    found: dict[str, Any] = {}
    inner = _current.get()
    while inner is not None:
        found = {**inner.facts, **found}
        inner = inner.around
    return found


_current: ContextVar[Happening | None] = ContextVar("lakeward_happening", default=None)
_listeners: tuple[Listener, ...] = ()
