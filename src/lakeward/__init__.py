"""Lakeward: SQL pipelines over datasets that live as Postgres rows or Iceberg tables, and move between the two."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from lakeward import errors

if TYPE_CHECKING:
    from lakeward.pipelines.python.declaring import transform
    from lakeward.storage.requests import BuildResult, WriteResult
    from lakeward.types.digest import Digest
    from lakeward.wiring.dataset import Dataset
    from lakeward.wiring.opening import open_workspace as open
    from lakeward.wiring.workspace import Workspace
else:
    # Loaded when first asked for: DuckDB, PyArrow and PyIceberg take a second that `lakeward --help` need not wait.
    _PLACES = {
        "BuildResult": ("lakeward.storage.requests", "BuildResult"),
        "Dataset": ("lakeward.wiring.dataset", "Dataset"),
        "Digest": ("lakeward.types.digest", "Digest"),
        "Workspace": ("lakeward.wiring.workspace", "Workspace"),
        "WriteResult": ("lakeward.storage.requests", "WriteResult"),
        "open": ("lakeward.wiring.opening", "open_workspace"),
        "transform": ("lakeward.pipelines.python.declaring", "transform"),
    }

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module 'lakeward' has no attribute {name!r}")
        module, attribute = _PLACES[name]
        value = globals()[name] = getattr(importlib.import_module(module), attribute)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_PLACES})


__version__ = "0.1.0"

__all__ = [
    "BuildResult",
    "Dataset",
    "Digest",
    "Workspace",
    "WriteResult",
    "__version__",
    "errors",
    "open",
    "transform",
]
