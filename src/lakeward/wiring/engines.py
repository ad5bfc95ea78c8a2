"""The engines of a workspace: one for builds, and one for the queries that people ask, each within its own limits."""

from __future__ import annotations

from pathlib import Path

from lakeward.compute.engines.duckdb import DuckDBEngine
from lakeward.control.ledger import Ledger
from lakeward.control.tree import Tree
from lakeward.pipelines.ad_hoc import AdHoc, SqlLimits
from lakeward.storage.facade import Storage
from lakeward.wiring.sections import ComputeSection
from lakeward.wiring.settings import Settings


def compute_engine(wanted: ComputeSection, scratch: Path) -> DuckDBEngine:
    """Return the engine of pipelines."""
    return DuckDBEngine(
        memory_limit=wanted.memory_limit,
        threads=wanted.threads,
        temp_directory=scratch,
        temp_limit=wanted.temp_limit,
        time_limit=wanted.time_limit_seconds,
    )


def ad_hoc(settings: Settings, tree: Tree, ledger: Ledger, storage: Storage, scratch: Path) -> AdHoc:
    """Return what answers the queries that people ask."""
    engine = DuckDBEngine(
        memory_limit=settings.sql.memory_limit,
        threads=settings.compute.threads,
        temp_directory=scratch,
        temp_limit=settings.compute.temp_limit,
        time_limit=settings.sql.time_limit_seconds,
    )
    return AdHoc(tree, ledger, storage, engine, SqlLimits(settings.sql.row_limit, settings.sql.at_a_time))
