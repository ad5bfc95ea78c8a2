"""Where a dataset stands, from the control plane alone: no arm is asked, so that it is quick and always answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakeward.control.routes import ARM_MODES
from lakeward.control.table_places import TablePlace
from lakeward.control.tree import DatasetRecord
from lakeward.storage.replication import Lag, Replication


@dataclass(frozen=True)
class DatasetStatus:
    """One dataset at one moment.

    `freshness` is the newest version that each arm holds, if any; `holders` are the arms that hold the newest of all;
    `behind`: its mirror does not. `table` is where its Iceberg table is, if it has one; `at_home`: where it belongs.
    """

    name: str
    version: int
    row_count: int
    arm: str
    mode: str
    holders: tuple[str, ...]
    status: str
    behind: Lag | None = None
    freshness: Mapping[str, int | None] = field(default_factory=dict)
    table: TablePlace | None = None
    at_home: bool = True

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        behind = self.behind.to_json() if self.behind is not None else None
        return {
            **vars(self),
            "holders": list(self.holders),
            "behind": behind,
            "freshness": dict(self.freshness),
            "table": self.table.to_json() if self.table is not None else None,
        }


def dataset_status(record: DatasetRecord, replication: Replication, place: TablePlace) -> DatasetStatus:
    """Return where a dataset stands."""
    mirror = record.route.mirror_arm
    lag = replication.lag(record, mirror) if mirror is not None and record.head_version else None
    freshness = replication.freshness(record)
    holders = tuple(arm for arm in ARM_MODES if record.head_version and freshness[arm] == record.head_version)
    return DatasetStatus(
        record.name,
        record.head_version,
        record.row_count,
        record.arm,
        record.route.mode,
        holders,
        record.status,
        lag if lag is not None and not lag.current else None,
        freshness,
        place if place.version is not None else None,
        place.version is None or place.identifier == record.home,
    )
