"""The storage layer's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lakeward.control.retention import DEFAULT_VERSIONS
from lakeward.errors import SettingsError


@dataclass(frozen=True)
class StorageSettings:
    """How the arms work.

    Args:
        warehouse: the directory below which Iceberg tables are.
        scratch: a directory for spilling; its contents can be deleted when no process runs.
        catalog: properties of the PyIceberg catalog; empty: a SqlCatalog in the workspace's own Postgres.
        memory_limit: what DuckDB may use for one read or write before it spills, as it writes sizes ("512MB").
        target_file_bytes: an Iceberg data file is closed when its rows in memory have reached this size.
        retained_versions: so many of the newest committed versions of each dataset are readable, at least.
    """

    warehouse: Path
    scratch: Path
    catalog: Mapping[str, str] = field(default_factory=dict)
    memory_limit: str = "512MB"
    target_file_bytes: int = 512 << 20
    retained_versions: int = DEFAULT_VERSIONS

    def __post_init__(self) -> None:
        """Refuse a warehouse whose tables would be written somewhere else.

        Raises:
            SettingsError: its path has a `#` or `?`. In the addresses that stand in Iceberg's metadata the path ends
                there, so that all tables would be put into one place.
        """
        found = next((character for character in "#?" if character in str(self.warehouse)), None)
        if found is not None:
            raise SettingsError(
                f"the warehouse {self.warehouse} can't hold Iceberg tables: their addresses would end at its {found!r}",
                safe="nothing was made",
                next_step="set LAKEWARD_WAREHOUSE to a directory without # and ? in its path",
                setting="warehouse",
            )
