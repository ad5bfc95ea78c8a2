"""The storage layer's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lakeward.control.retention import DEFAULT_VERSIONS
from lakeward.errors import SettingsError
from lakeward.storage.warehouse import Warehouse


@dataclass(frozen=True)
class CompactionPolicy:
    """Which data files of a dataset's head are rewritten.

    Args:
        delete_files: a data file that so many delete files apply to is rewritten.
        deleted_share: so is one of which more than this share of rows is deleted.
        worthwhile_share: many delete files alone count only from this share of deleted rows on: who deletes one row at
            a time must not have a large file rewritten every few writes.
        small_files: small files are merged once there are so many of them.
        small_share: a file is small below this share of `target_bytes`.
        tier: so many small files of like size become one, which is in the next tier: a row is rewritten once for each.
        target_bytes: the size on disk up to which files are merged.
    """

    delete_files: int = 8
    deleted_share: float = 0.3
    worthwhile_share: float = 0.01
    small_files: int = 32
    small_share: float = 1 / 16
    tier: int = 8
    target_bytes: int = 512 << 20

    @property
    def small_bytes(self) -> float:
        """The size on disk below which a file is small."""
        return self.small_share * self.target_bytes

    def thorough(self) -> CompactionPolicy:
        """Return what is done for somebody who asks: two small files of a tier are enough, nothing is too dear."""
        return replace(self, worthwhile_share=0.0, small_files=2, tier=2)


@dataclass(frozen=True)
class StorageSettings:
    """How the arms work.

    Args:
        warehouse: the directory, or the place in an object store, below which Iceberg tables are.
        scratch: a directory for spilling; its contents can be deleted when no process runs.
        catalog: properties of the PyIceberg catalog; empty: a SqlCatalog in the workspace's own Postgres.
        memory_limit: what DuckDB may use for one read or write before it spills, as it writes sizes ("512MB").
        target_file_bytes: an Iceberg data file is closed when its rows in memory have reached this size.
        retained_versions: so many of the newest committed versions of each dataset are readable, at least.
        filter_seconds: how long a user's row filter may compute in one read; None: any time.
        born_in_place: whether new Iceberg tables are made under the slugs of catalog and schema; else in the legacy
            namespace.
        born_in_place_by_writer: the same for writers by name, where they differ.
    """

    warehouse: Warehouse
    scratch: Path
    catalog: Mapping[str, str] = field(default_factory=dict)
    memory_limit: str = "512MB"
    target_file_bytes: int = 512 << 20
    retained_versions: int = DEFAULT_VERSIONS
    filter_seconds: float | None = None
    born_in_place: bool = True
    born_in_place_by_writer: Mapping[str, bool] = field(default_factory=dict)

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

    def in_place(self, writer: str) -> bool:
        """Say whether a table that this writer makes is born under the slugs of its catalog and schema."""
        return self.born_in_place_by_writer.get(writer, self.born_in_place)
