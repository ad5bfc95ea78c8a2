"""Finds plug-ins: adding an arm, connector, strategy or engine is adding one file to its package.

A plug-in is a concrete class with a `name` and a one-line docstring, in a module of the package that is searched.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
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
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for candidate in vars(module).values():
            # What a module merely imports is not its own; what a package takes from its own modules is.
            if not inspect.isclass(candidate) or not f"{candidate.__module__}.".startswith(f"{module.__name__}."):
                continue
            if not issubclass(candidate, base) or inspect.isabstract(candidate) or candidate.__name__.startswith("_"):
                continue
            name = candidate.__dict__.get("name")
            if not isinstance(name, str) or not candidate.__doc__:
                raise ValueError(f"plug-in {candidate!r} needs a `name` and a docstring")
            if name in found:
                raise ValueError(f"plug-ins {found[name]!r} and {candidate!r} share the name {name!r}")
            found[name] = candidate
    return dict(sorted(found.items()))
