"""The Iceberg arm: native tables in any PyIceberg catalog. Only this package knows PyIceberg."""

from __future__ import annotations

from lakeward.storage.arms.iceberg.arm import IcebergArm

__all__ = ["IcebergArm"]
