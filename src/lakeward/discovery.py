"""Finds plug-ins: adding an arm, connector, strategy or engine is adding one file to its package.

A plug-in is a concrete class with a `name` and a one-line docstring, in a module of the package that is searched.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any


def discover(package: ModuleType, base: type) -> dict[str, type[Any]]:
    """Return the concrete subclasses of `base` defined in the modules of `package`, by their `name`, sorted.

    Raises:
        ValueError: two classes share a name, or one has no name or docstring. That is a fault of the code, found by
            the first test that imports it.
    """
    found: dict[str, type[Any]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        for candidate in _plug_ins(f"{package.__name__}.{info.name}", base):
            name = candidate.__dict__.get("name")
            if not isinstance(name, str) or not candidate.__doc__:
                raise ValueError(f"plug-in {candidate!r} needs a `name` and a docstring")
            if name in found:
                raise ValueError(f"plug-ins {found[name]!r} and {candidate!r} share the name {name!r}")
            found[name] = candidate
    return dict(sorted(found.items()))


def discover_lazily(package: ModuleType, base: type) -> dict[str, Callable[[], type[Any]]]:
    """Return, by name, what imports and returns each plug-in of a package whose modules are called as their plug-ins.

    For those that are slow to import and often not needed. The errors of `discover` are raised by what is returned.
    """
    return {
        info.name: partial(_of_module, f"{package.__name__}.{info.name}", base)
        for info in sorted(pkgutil.iter_modules(package.__path__))
    }


def _of_module(module: str, base: type) -> type[Any]:
    name = module.rpartition(".")[2]
    found = _plug_ins(module, base)
    if [candidate.__dict__.get("name") for candidate in found] != [name] or not found[0].__doc__:
        raise ValueError(
            f"module {module} has to hold one plug-in with the `name` {name!r} and a docstring, not {found}"
        )
    return found[0]


def _plug_ins(name: str, base: type) -> list[type[Any]]:
    """Return the concrete subclasses of `base` that a module defines."""
    module = importlib.import_module(name)
    return [
        candidate
        for candidate in vars(module).values()
        # What a module merely imports is not its own; what a package takes from its own modules is.
        if inspect.isclass(candidate)
        and f"{candidate.__module__}.".startswith(f"{module.__name__}.")
        and issubclass(candidate, base)
        and not inspect.isabstract(candidate)
        and not candidate.__name__.startswith("_")
    ]
