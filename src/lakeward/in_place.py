"""Rows that a query engine may read itself, where they lie, instead of being handed a stream of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class InPlace:
    """Rows of one version in local Parquet files, as storage describes them to an engine that has DuckDB's SQL.

    The text is storage's own and trusted; whoever runs it lets it read these files and no others.

    Args:
        sql: a DuckDB query of the rows, each column under its name and in its type.
        paths: the absolute paths of all files that it reads; DuckDB takes none of them for a pattern.
        tables: Arrow tables that it reads besides, by names that nobody can guess.
    """

    sql: str
    paths: tuple[str, ...]
    tables: Mapping[str, pa.Table]
