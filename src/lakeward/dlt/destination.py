"""The destination, as dlt knows it: where the workspace is, what it can take, and who loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlt.common.destination import Destination, DestinationCapabilitiesContext
from dlt.common.destination.configuration import ParquetFormatConfiguration
from dlt.common.schema import Schema
from dlt.common.schema.typing import TLoaderMergeStrategy

from lakeward.dlt.client import LakewardClient
from lakeward.dlt.column_types import DECIMAL, WEI
from lakeward.dlt.configuration import LakewardConfiguration
from lakeward.wiring.workspace import Workspace

MERGE_STRATEGIES: Sequence[TLoaderMergeStrategy] = ("delete-insert", "upsert", "insert-only")
"""The first is what dlt takes where none is declared, as with other destinations."""


class lakeward(Destination[LakewardConfiguration, LakewardClient]):
    """Datasets of a Lakeward workspace, as a destination of dlt.

    Example:
        >>> pipeline = dlt.pipeline("github", destination=lakeward(home="./home"), dataset_name="raw")  # doctest: +SKIP
    """

    spec = LakewardConfiguration

    def __init__(
        self,
        home: str | None = None,
        database_url: str | None = None,
        warehouse: str | None = None,
        catalog: str = "main",
        arm: str | None = None,
        destination_name: str | None = None,
        environment: str | None = None,
        workspace: Workspace | None = None,
        **kwargs: Any,
    ) -> None:
        """Say where to write; see `LakewardConfiguration`.

        Args:
            home, database_url, warehouse, catalog, arm: see there.
            destination_name, environment: dlt's own.
            workspace: an open one, instead of `home`, `database_url` and `warehouse`; the caller closes it.
            kwargs: capabilities of dlt that are to be others.
        """
        self._workspace = workspace
        super().__init__(
            home=home,
            database_url=database_url,
            warehouse=warehouse,
            catalog=catalog,
            arm=arm,
            destination_name=destination_name,
            environment=environment,
            **kwargs,
        )

    @property
    def client_class(self) -> type[LakewardClient]:
        """The class of the clients that `client` makes."""
        return LakewardClient

    def client(self, schema: Schema, initial_config: LakewardConfiguration | None = None) -> LakewardClient:
        """Return a client; see `Destination.client`."""
        made = super().client(schema, initial_config)  # type: ignore[arg-type]
        made.given = self._workspace
        return made

    def _raw_capabilities(self) -> DestinationCapabilitiesContext:
        caps = DestinationCapabilitiesContext.generic_capabilities("parquet")
        caps.supported_loader_file_formats = ["parquet"]
        caps.supported_staging_file_formats = []
        caps.has_case_sensitive_identifiers = False
        caps.max_identifier_length = caps.max_column_identifier_length = 255
        caps.supported_merge_strategies = list(MERGE_STRATEGIES)
        caps.supported_replace_strategies = ["truncate-and-insert", "insert-from-staging", "staging-optimized"]
        caps.decimal_precision, caps.wei_precision = DECIMAL, WEI
        # What is finer than microseconds comes through to the dataset, which keeps or refuses it; dlt would cut it off.
        caps.max_timestamp_precision = 9
        caps.parquet_format = ParquetFormatConfiguration(version="2.6")
        caps.supports_nested_types = True
        return caps


lakeward.register()
