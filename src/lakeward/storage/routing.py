"""Which arm a read goes to: decided here and nowhere else, from the route and the ledger, never by looking at rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from lakeward.control.ledger import Ledger
from lakeward.control.records import ArmVersion
from lakeward.control.retention import Retention
from lakeward.control.tree import DatasetRecord
from lakeward.errors import ArmNotCurrent, UnknownObject, UnknownVersion
from lakeward.storage.arm import StorageArm

log = logging.getLogger("lakeward.routing")


@dataclass(frozen=True)
class Place:
    """Where a read finds its rows: an arm that holds the version, and how."""

    arm: StorageArm
    version: ArmVersion


class Routing:
    """Resolves a dataset and a version to an arm that holds it."""

    def __init__(self, ledger: Ledger, arms: Mapping[str, StorageArm], retention: Retention) -> None:
        self._ledger = ledger
        self._retention = retention
        self._arms = arms

    @property
    def arms(self) -> Mapping[str, StorageArm]:
        """Every arm of the workspace, by name."""
        return self._arms

    def arm(self, name: str) -> StorageArm:
        """Return the arm called `name`.

        Raises:
            UnknownObject: there is none.
        """
        if name not in self._arms:
            raise UnknownObject(f"unknown arm {name!r}; there are {', '.join(self._arms)}", arm=name)
        return self._arms[name]

    def resolve(self, dataset: DatasetRecord, arm: str | None = None, version: int | None = None) -> Place | None:
        """Find the arm for a read; None if the dataset has no version yet.

        An arm that is asked for by name must hold the version. Otherwise the route's primary answers, and where that
        does not hold an old version, an arm that does. Nobody ever reads zero rows because the data is elsewhere.

        Raises:
            UnknownObject: no such arm.
            UnknownVersion: the dataset has no such committed version.
            ArmNotCurrent: the arm that was asked for does not hold the version, or no arm does.
        """
        if arm is not None:
            self.arm(arm)
        if version is None and dataset.head_version == 0:
            return None
        preferred = [arm] if arm is not None else [dataset.route.primary_arm, *self._arms]
        for name in dict.fromkeys(preferred):
            held = self._ledger.arm_version(dataset.id, name, version)
            if held is not None:
                if name != preferred[0]:
                    log.warning("dataset %s: version %d is read from the %s arm", dataset.name, held.version, name)
                return Place(self._arms[name], held)
        raise self._not_held(dataset, arm, version)

    def resolve_pair(self, dataset: DatasetRecord, arm: str | None, old: int, new: int) -> tuple[Place, Place]:
        """Find two versions for a comparison: on the arm that is asked for, else on one that holds both, else on two.

        Raises:
            UnknownObject, UnknownVersion, ArmNotCurrent: see `resolve`.
        """
        if arm is None:
            for name in dict.fromkeys([dataset.route.primary_arm, *self._arms]):
                held = [self._ledger.arm_version(dataset.id, name, version) for version in (old, new)]
                if held[0] is not None and held[1] is not None:
                    return Place(self._arms[name], held[0]), Place(self._arms[name], held[1])
        places = [self.resolve(dataset, arm, version) for version in (old, new)]
        assert places[0] is not None and places[1] is not None, "each version is named"
        return places[0], places[1]

    def holders(self, dataset: DatasetRecord) -> list[Place]:
        """Return every arm that holds the dataset's head version, the primary first."""
        places = []
        for name in dict.fromkeys([dataset.route.primary_arm, *self._arms]):
            held = self._ledger.arm_version(dataset.id, name)
            if held is not None:
                places.append(Place(self._arms[name], held))
        return places

    def _not_held(self, dataset: DatasetRecord, arm: str | None, version: int | None) -> Exception:
        wanted = dataset.head_version if version is None else version
        elsewhere = [name for name in self._arms if self._ledger.arm_version(dataset.id, name, version) is not None]
        if not elsewhere and self._retention.was_committed(dataset.id, wanted):
            return UnknownVersion(
                f"version {wanted} of dataset {dataset.name} has expired: of its versions the newest "
                f"{self._retention.versions} are readable, and those that somebody keeps",
                safe=f"the head, version {dataset.head_version}, and its history stand",
                next_step="read a newer version; to have more of them: retention.versions",
                dataset=dataset.name,
                version=wanted,
            )
        if arm is None or not elsewhere:
            return UnknownVersion(
                f"dataset {dataset.name} has no committed version {wanted}; its head is {dataset.head_version}",
                next_step=f"`lakeward dataset history {dataset.name}` lists its versions",
                dataset=dataset.name,
                version=wanted,
            )
        newest = self._ledger.newest_arm_version(dataset.id, arm)
        holds = f"holds version {newest.version}" if newest else "never held it"
        return ArmNotCurrent(
            f"dataset {dataset.name} is not current on the {arm} arm: that arm {holds}, version {wanted} was asked for",
            safe=f"version {wanted} is on the {' and '.join(elsewhere)} arm",
            next_step=f"`lakeward dataset copy {dataset.name} --to {arm}` brings it there",
            dataset=dataset.name,
            arm=arm,
            version=wanted,
            holds=newest.version if newest else None,
        )
