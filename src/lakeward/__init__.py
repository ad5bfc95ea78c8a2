"""Lakeward: SQL pipelines over datasets that live as Postgres rows or Iceberg tables, and move between the two."""

from __future__ import annotations

from lakeward import errors
from lakeward.storage.requests import BuildResult, WriteResult
from lakeward.types.digest import Digest
from lakeward.wiring.opening import open_workspace as open
from lakeward.wiring.workspace import Dataset, Workspace

__version__ = "0.1.0"

__all__ = ["BuildResult", "Dataset", "Digest", "Workspace", "WriteResult", "__version__", "errors", "open"]
