"""The Postgres arm: rows as JSON documents in one table of the control plane's own database."""

from __future__ import annotations

from lakeward.storage.arms.postgres.arm import PostgresRowsArm

__all__ = ["PostgresRowsArm"]
