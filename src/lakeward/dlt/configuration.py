"""What a destination is told of its workspace; also by dlt's own settings, under `destination.lakeward`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Final

from dlt.common.configuration import configspec
from dlt.common.destination.client import DestinationClientDwhConfiguration
from dlt.common.typing import TSecretStrValue


@configspec
class LakewardConfiguration(DestinationClientDwhConfiguration):
    """Where a destination writes. What is not given comes from the settings of Lakeward, as for its command line.

    Args:
        home: the workspace's directory.
        database_url: its Postgres, if that is not the embedded one.
        warehouse: where its Iceberg tables are.
        catalog: of the datasets; their schema is dlt's `dataset_name`.
        arm: of datasets that are made: `postgres` or `iceberg`; None: as the flag of the writer `dlt.load` says.
    """

    destination_type: Final[str] = dataclasses.field(default="lakeward", init=False, repr=False, compare=False)  # type: ignore[misc]
    home: str | None = None
    database_url: TSecretStrValue | None = None
    warehouse: str | None = None
    catalog: str = "main"
    arm: str | None = None

    __config_gen_annotations__: ClassVar[list[str]] = ["home", "catalog", "arm"]

    def data_location(self) -> str:
        """Return what tells this workspace from another; no secret is in it."""
        return self.home or self.warehouse or "lakeward"

    def __str__(self) -> str:
        return f"{self.data_location()}, catalog {self.catalog}"
