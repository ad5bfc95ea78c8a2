"""Which arm a read goes to: decided here and nowhere else, by route, ledger and the reader's flag, never by rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeward.control.flags.cache import FlagCache
from lakeward.control.flags.registry import PRIMARY, SHADOW
from lakeward.control.ledger import Ledger
from lakeward.control.metrics import Metrics
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


@dataclass(frozen=True)
class Chosen:
    """Where a read goes.

    Args:
        reader: the named place in the product that reads.
        wanted: the arm that was to answer.
        place: the one that does; None: the dataset has no version yet.
        shadow: the reader compares arms.
        beside: the other arm, which holds the same version; None: none does, or the reader compares nothing.
    """

    reader: str
    wanted: str
    place: Place | None
    shadow: bool = False
    beside: Place | None = None


class Routing:
    """Resolves a dataset and a version to an arm that holds it.

    Args:
        ledger: says which arm holds which version.
        arms: by name.
        retention: knows which versions have expired.
        flags: what readers prefer.
        metrics: counts reads.
    """

    def __init__(
        self,
        ledger: Ledger,
        arms: Mapping[str, StorageArm],
        retention: Retention,
        flags: FlagCache,
        metrics: Metrics,
    ) -> None:
        self._ledger = ledger
        self._retention = retention
        self._arms = arms
        self._flags = flags
        self._metrics = metrics

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
            raise UnknownObject.among("arm", name, self._arms, arm=name)
        return self._arms[name]

    def choose(
        self,
        dataset: DatasetRecord,
        reader: str,
        arm: str | None = None,
        version: int | None = None,
        held: ArmVersion | None = None,
    ) -> Chosen:
        """Find the arm for a reader: the one that it names, else the one that its flag prefers, else the primary.

        Where the preferred arm does not hold the version, another one answers, which `told` warns of; an arm that is
        named must hold it. Nobody ever reads zero rows because the data is elsewhere.

        Args:
            dataset, reader, arm, version: what is to be read, by whom.
            held: where the arm that is to answer holds the version, if that was asked already.

        Raises:
            UnknownObject, UnknownVersion, ArmNotCurrent: see `resolve`.
        """
        wanted, shadow = self._wanted(dataset, reader, arm)
        if held is not None:
            place: Place | None = Place(self.arm(wanted), held)
        else:
            place = self._find(dataset, arm, version, wanted)
        beside = self._other(dataset, [place]) if shadow and place is not None else []
        return Chosen(reader, wanted, place, shadow, beside[0] if beside else None)

    def choose_each(self, asked: Sequence[tuple[DatasetRecord, str | None, int | None]], reader: str) -> list[Chosen]:
        """Choose for several datasets at once, each with the arm that is named and the version.

        The errors are those of `choose`.
        """
        wanted = [self._wanted(dataset, reader, arm)[0] for dataset, arm, _ in asked]
        held = self._ledger.arm_versions(
            [(dataset.id, arm, version) for (dataset, _, version), arm in zip(asked, wanted, strict=True)]
        )
        return [
            self.choose(dataset, reader, arm, version, found)
            for (dataset, arm, version), found in zip(asked, held, strict=True)
        ]

    def choose_pair(
        self, dataset: DatasetRecord, reader: str, arm: str | None, old: int, new: int
    ) -> tuple[Place, Chosen, Place | None]:
        """Find two versions for a reader's comparison: on one arm that holds both, as `choose` prefers, else on two.

        Returns:
            The place of the older version, the choice for the newer one, and where the older one is besides that.

        Raises:
            UnknownObject, UnknownVersion, ArmNotCurrent: see `resolve`.
        """
        wanted, shadow = self._wanted(dataset, reader, arm)
        places = self._pair(dataset, arm, old, new, wanted)
        beside = self._other(dataset, places) if shadow and places[0].arm is places[1].arm else []
        older, newer = beside or (None, None)
        return places[0], Chosen(reader, wanted, places[1], shadow, newer), older

    def preferred(self, dataset: DatasetRecord, reader: str, arm: str | None = None) -> StorageArm:
        """Return the arm that is to answer a reader, whether it holds the version or not; the ledger is not asked."""
        return self.arm(self._wanted(dataset, reader, arm)[0])

    def told(self, dataset: DatasetRecord, chosen: Chosen, kind: str) -> None:
        """Log and count where a read of one of `scans.KINDS` goes; once for each read."""
        place = chosen.place
        if place is None:
            return
        name = place.arm.name
        log.debug(
            "%s reads dataset %s, version %d, on the %s arm", chosen.reader, dataset.name, place.version.version, name
        )
        count, reader = self._metrics.add, chosen.reader
        count("lakeward_reads_total", dataset=dataset.id, arm=name, kind=kind, reader=reader)
        if name != chosen.wanted:
            self._warn(dataset, place, chosen.wanted)
            count("lakeward_read_fallbacks_total", dataset=dataset.id, arm=chosen.wanted, reader=reader)

    def resolve(self, dataset: DatasetRecord, arm: str | None = None, version: int | None = None) -> Place | None:
        """Find the arm for what no reader's flag decides; None if the dataset has no version yet.

        An arm that is asked for by name must hold the version. Otherwise the route's primary answers, and where that
        does not hold an old version, an arm that does.

        Raises:
            UnknownObject: no such arm.
            UnknownVersion: the dataset has no such committed version.
            ArmNotCurrent: the arm that was asked for does not hold the version, or no arm does.
        """
        wanted = dataset.route.primary_arm if arm is None else arm
        place = self._find(dataset, arm, version, wanted)
        if place is not None and place.arm.name != wanted:
            self._warn(dataset, place, wanted)
        return place

    def _wanted(self, dataset: DatasetRecord, reader: str, arm: str | None) -> tuple[str, bool]:
        """Return the arm that is to answer, and whether it is compared with the other one."""
        if arm is not None:
            return arm, False
        prefer = self._flags.preference(reader, dataset.id)
        return (dataset.route.primary_arm if prefer in (PRIMARY, SHADOW) else prefer), prefer == SHADOW

    def _find(self, dataset: DatasetRecord, arm: str | None, version: int | None, wanted: str) -> Place | None:
        if arm is not None:
            self.arm(arm)
        if version is None and dataset.head_version == 0:
            return None
        names = [arm] if arm is not None else [wanted, dataset.route.primary_arm, *self._arms]
        for name in dict.fromkeys(names):
            held = self._ledger.arm_version(dataset.id, name, version)
            if held is not None:
                return Place(self._arms[name], held)
        raise self._not_held(dataset, arm, version)

    def _pair(self, dataset: DatasetRecord, arm: str | None, old: int, new: int, wanted: str) -> tuple[Place, Place]:
        if arm is None:
            for name in dict.fromkeys([wanted, dataset.route.primary_arm, *self._arms]):
                held = [self._ledger.arm_version(dataset.id, name, version) for version in (old, new)]
                if held[0] is not None and held[1] is not None:
                    return Place(self._arms[name], held[0]), Place(self._arms[name], held[1])
        places = [self._find(dataset, arm, version, wanted) for version in (old, new)]
        assert places[0] is not None and places[1] is not None, "each version is named"
        return places[0], places[1]

    def _other(self, dataset: DatasetRecord, places: Sequence[Place]) -> list[Place]:
        """Return where another arm than that of some versions holds them all, the mirror first; none: nothing."""
        names = dict.fromkeys([*filter(None, [dataset.route.mirror_arm]), *self._arms])
        for name in names:
            if name == places[0].arm.name:
                continue
            held = [self._ledger.arm_version(dataset.id, name, place.version.version) for place in places]
            if all(held):
                return [Place(self._arms[name], each) for each in held if each is not None]
        return []

    @staticmethod
    def _warn(dataset: DatasetRecord, place: Place, wanted: str) -> None:
        log.warning(
            "dataset %s: version %d is read from the %s arm, since the %s arm does not hold it",
            dataset.name,
            place.version.version,
            place.arm.name,
            wanted,
        )

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
        if not elsewhere and wanted != dataset.head_version and self._retention.was_committed(dataset.id, wanted):
            return UnknownVersion(
                f"version {wanted} of dataset {dataset.name} has expired: readable are the newest "
                f"{self._retention.versions} versions and those that somebody keeps, but none that only an arm had "
                "which a flip has emptied",
                safe=f"the head, version {dataset.head_version}, and its history stand",
                next_step="read a newer version; retention.versions keeps more of them, and Dataset.keep one for good",
                dataset=dataset.name,
                version=wanted,
            )
        if not elsewhere and wanted and wanted == dataset.head_version:
            return ArmNotCurrent(
                f"no arm holds version {wanted} of dataset {dataset.name}, its head",
                safe="nothing was read: an empty answer would be wrong",
                next_step=f"`lakeward dataset history {dataset.name}` shows what was done last",
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
