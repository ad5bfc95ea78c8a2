"""Puts the pages into the application: every file of `pages/` that has a `router`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from fastapi import FastAPI

from lakeward.server.web import errors, pages
from lakeward.server.web.headers import SecurityHeaders
from lakeward.server.web.navigation import Place
from lakeward.server.web.page import Pages
from lakeward.server.web.static_files import StaticFiles, static_router


def add_pages(app: FastAPI) -> None:
    """Add all pages, their files, and what answers for their errors. Called once problem documents are registered."""
    modules = list(_modules())
    files = StaticFiles()
    app.state.pages = Pages(all_places(), files)
    app.include_router(static_router(files), include_in_schema=False)
    for each in modules:
        app.include_router(each.router, include_in_schema=False)
    errors.register(app)
    app.add_middleware(SecurityHeaders)


def all_places() -> list[Place]:
    """Return where the pages stand that are in the navigation."""
    return [each.PLACE for each in _modules() if hasattr(each, "PLACE")]


def _modules() -> Iterator[ModuleType]:
    for info in sorted(pkgutil.iter_modules(pages.__path__), key=lambda each: each.name):
        module = importlib.import_module(f"{pages.__name__}.{info.name}")
        if hasattr(module, "router"):
            yield module
