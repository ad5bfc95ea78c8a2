"""Finds the routes: adding a noun is adding a module to `server/routes/`."""

from __future__ import annotations

import importlib
import pkgutil

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from lakeward.server import routes
from lakeward.server.routing import PREFIX


def include_all(app: FastAPI) -> None:
    """Add every route that a module of `server/routes/` declares: its `router`, below its `PREFIX`, if it has another.

    A dataset's name may have slashes. So what ends with a name comes last: it would take the paths of all others.
    """
    modules = [importlib.import_module(f"{routes.__name__}.{info.name}") for info in _modules()]
    nested = [each for each in modules if hasattr(each, "router")]
    for last in (False, True):
        for module in nested:
            part = APIRouter()
            part.routes += [
                route
                for route in module.router.routes
                if isinstance(route, APIRoute) and route.path.endswith(":path}") is last
            ]
            app.include_router(part, prefix=getattr(module, "PREFIX", PREFIX))


def _modules() -> list[pkgutil.ModuleInfo]:
    return sorted(pkgutil.iter_modules(routes.__path__))
