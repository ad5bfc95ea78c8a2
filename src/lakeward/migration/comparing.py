"""Compares all rows of a dataset's two arms at one version: digests side by side, then the rows that differ, by key.

What was found is kept, and blocks a switch if the arms differ. Nothing is carried over from an earlier comparison: each
one reads everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakeward.control.records import ArmVersion
from lakeward.control.tree import DatasetRecord
from lakeward.errors import ArmNotCurrent, ParityMismatch
from lakeward.migration.accepting import Accepted, accepted
from lakeward.migration.stage import Rooms
from lakeward.storage.finding import Finding, both, without
from lakeward.storage.routing import Place
from lakeward.storage.table import table_ref
from lakeward.types.digest import Digest


@dataclass(frozen=True)
class Compared:
    """Two arms that are equal at a version.

    Args:
        version: which one.
        rows: how many rows each has.
        digest: of the arm that serves, as text.
        ignored: how many rows differ in each column of which a rule says that this is known and accepted.
        exact: whether those are all, or there may be more.
        expired: columns whose rule counts no more.
    """

    version: int
    rows: int
    digest: str
    ignored: Mapping[str, int] = field(default_factory=dict)
    exact: bool = True
    expired: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it; what there is nothing to say of is left out."""
        told: dict[str, object] = {"version": self.version, "rows": self.rows, "digest": self.digest}
        if self.ignored:
            told |= {"ignored": dict(self.ignored), "ignored_exact": self.exact}
        if self.expired:
            told["expired_rules"] = list(self.expired)
        return told


@dataclass(frozen=True)
class Verified:
    """What every arm that holds a dataset's head has.

    Args:
        dataset: its name.
        version: the head.
        digests: by arm, the one that serves first.
        recorded: the digest that was found when the version was first looked at, as text.
        compared: what the comparison of two arms found; None: one alone holds the head.
    """

    dataset: str
    version: int
    digests: Mapping[str, Digest]
    recorded: str | None
    compared: Compared | None

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        told: dict[str, object] = {
            "dataset": self.dataset,
            "version": self.version,
            "equal": True,
            "digests": {arm: str(digest) for arm, digest in self.digests.items()},
            "recorded": self.recorded,
        }
        found = self.compared.to_json() if self.compared is not None else {}
        return told | {name: value for name, value in found.items() if name not in ("version", "digest")}


def compare(rooms: Rooms, dataset: DatasetRecord, other: str) -> Compared:
    """Compare the arm that serves a dataset with another one, at the newest version that the other one holds.

    A copy that a backfill has brought there, and that nobody has compared yet, counts from then on.

    Args:
        rooms: the parts of the workspace.
        dataset: which one.
        other: the arm that does not serve it.

    Raises:
        ArmNotCurrent: the arms hold no version in common.
        ParityMismatch: they differ; that is kept, and blocks a switch.
    """
    # As it is now: the copy's table may have been made since the caller looked.
    dataset = rooms.tree.by_id(dataset.id)
    waiting = rooms.replication.proving.waiting(dataset, other)
    places = _places(rooms, dataset, other, waiting)
    table = table_ref(dataset)
    digests = both(places, lambda place: place.arm.digest(table, place.version))
    found = _judged(rooms, dataset, places, (digests[0], digests[1]))
    if waiting is not None:
        rooms.replication.proving.prove(dataset, other, waiting)
    return found


def compare_first(rooms: Rooms, dataset: DatasetRecord, other: str) -> Compared | None:
    """Compare a copy that nobody has compared yet, so that it counts; None: there is none on that arm.

    Args, Raises: see `compare`.
    """
    return compare(rooms, dataset, other) if rooms.replication.lag(dataset, other).waits is not None else None


def _places(rooms: Rooms, dataset: DatasetRecord, other: str, waiting: ArmVersion | None) -> tuple[Place, Place]:
    """Return where the arm that serves holds the version to compare, and where the other one does."""
    routing = rooms.storage.routing
    version = waiting.version if waiting is not None else rooms.replication.lag(dataset, other).holds
    if version is None:
        raise ArmNotCurrent(
            f"the {other} arm holds no version of dataset {dataset.name}",
            next_step=f"lakeward flip start {dataset.name}",
            dataset=dataset.name,
            arm=other,
        )
    first = routing.resolve(dataset, dataset.route.primary_arm, version)
    second = Place(routing.arm(other), waiting) if waiting is not None else routing.resolve(dataset, other, version)
    assert first is not None and second is not None, "the version is named"
    return first, second


def verify(rooms: Rooms, dataset: DatasetRecord) -> Verified:
    """Compare every arm that holds the head of a dataset, and what was recorded of it before.

    Raises:
        ParityMismatch: they differ; of two arms that is kept, and blocks a switch.
    """
    recorded: str | None = None
    try:
        parity = rooms.storage.verify(dataset)
        digests, version = parity.digests, parity.version
        recorded = str(parity.recorded) if parity.recorded is not None else None
    except ParityMismatch as error:
        shown, found = error.fields["digests"], error.fields["version"]
        assert isinstance(shown, dict) and isinstance(found, int)
        digests, version = {arm: Digest.parse(digest) for arm, digest in shown.items()}, found
        if len(set(digests.values())) == 1:
            raise
    if len(digests) < 2:
        return Verified(dataset.name, version, digests, recorded, None)
    primary, *others = digests
    other = next((arm for arm in others if digests[arm] != digests[primary]), others[0])
    first, second = (rooms.storage.routing.resolve(dataset, arm, version) for arm in (primary, other))
    assert first is not None and second is not None, "the version is named"
    compared = _judged(rooms, dataset, (first, second), (digests[primary], digests[other]))
    return Verified(dataset.name, version, digests, recorded, compared)


def _judged(
    rooms: Rooms, dataset: DatasetRecord, places: tuple[Place, Place], digests: tuple[Digest, Digest]
) -> Compared:
    """Say whether two arms are equal as far as the dataset's rules want them to be, and keep what was found."""
    version = places[0].version.version
    rules = accepted(rooms, dataset)
    details: dict[str, object] = {
        "digests": {place.arm.name: str(digest) for place, digest in zip(places, digests, strict=True)},
        **({"expired_rules": list(rules.expired)} if rules.expired else {}),
    }
    finding: Finding | None = None
    ignored: dict[str, int] = {}
    exact = True
    if digests[0] != digests[1]:
        finding, ignored, exact = _found(rooms, dataset, places, rules)
        details |= {"ignored": ignored, "ignored_exact": exact} if ignored else {}
        recorded = rooms.storage.recorded_digest(dataset, version)
        sound = [place.arm.name for place, digest in zip(places, digests, strict=True) if digest == recorded]
        details |= {"finding": finding.to_json(), "as_recorded": sound} if finding is not None else {}
    rooms.parity.record(dataset.id, version, "full", equal=finding is None, rows=digests[0].count, details=details)
    if finding is not None:
        raise _mismatch(dataset, version, places, finding, details)
    return Compared(version, digests[0].count, str(digests[0]), ignored, exact, rules.expired)


def _found(
    rooms: Rooms, dataset: DatasetRecord, places: tuple[Place, Place], rules: Accepted
) -> tuple[Finding | None, dict[str, int], bool]:
    """Return the rows that differ in what counts, and by column how many differ in what is ignored; and if exactly."""
    table, positions = table_ref(dataset), dataset.next_row_index
    if not rules.columns:
        return rooms.finder.find(table, places, positions), {}, True
    counted = without(table, rules.columns)
    first, second = both(places, lambda place: place.arm.digest(counted, place.version))
    finding = rooms.finder.find(counted, places, positions) if first != second else None
    everything = rooms.finder.find(table, places, positions)
    ignored = {name: count for name, count in everything.columns.items() if name in rules.columns}
    return finding, ignored, everything.exact


def _mismatch(
    dataset: DatasetRecord, version: int, places: tuple[Place, Place], finding: Finding, details: Mapping[str, object]
) -> ParityMismatch:
    arms = " and the ".join(place.arm.name for place in places)
    count = f"{finding.rows:,}" if finding.exact else f"at least {finding.rows:,}"
    rows = "\n".join(f"  {sample}" for sample in finding.samples)
    sound = details["as_recorded"]
    told = f"\nonly the {sound[0]} arm is as it was recorded before" if isinstance(sound, list) and sound else ""
    return ParityMismatch(
        f"dataset {dataset.name}, version {version}: the {arms} arm differ in {count} "
        f"{'row' if count == '1' else 'rows'}, for instance\n{rows}{told}",
        safe="nothing was changed; readers are served by the primary arm as before",
        next_step=f"lakeward flip resync {dataset.name} --dry-run shows how the {places[1].arm.name} arm gets a new "
        f"copy; lakeward flip cancel {dataset.name} --dry-run gives the flip up"
        if sound != [places[1].arm.name]
        else f"bring the rows of the {places[0].arm.name} arm back from a backup, or write them anew; keep the copy",
        dataset=dataset.name,
        version=version,
        **details,
    )
