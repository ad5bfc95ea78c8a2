"""Where tables are, and how many are in each namespace: before anything was moved, and now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakeward.control.identifiers import TableIdentifier
from lakeward.control.table_places import TablePlace
from lakeward.control.tree import DatasetRecord


@dataclass(frozen=True)
class Standing:
    """A dataset that has a table, and where that is; `at_home`: where the dataset's name says."""

    dataset: str
    place: TablePlace
    at_home: bool

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {"dataset": self.dataset, **self.place.to_json(), "at_home": self.at_home}


@dataclass(frozen=True)
class MoveStatus:
    """The tables of some datasets, in the order of their names."""

    tables: tuple[Standing, ...]

    @property
    def under_way(self) -> list[Standing]:
        """Those that are being moved, or whose move was cut short."""
        return [each for each in self.tables if each.place.going is not None]

    @property
    def namespaces(self) -> dict[str, tuple[int, int]]:
        """How many of them are in each namespace, whose levels are joined by dots: before any move, and now."""
        before = count_namespaces(each.place.first for each in self.tables)
        now = count_namespaces(each.place.identifier for each in self.tables)
        return {name: (before.get(name, 0), now.get(name, 0)) for name in sorted({*before, *now})}

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        counts = {name: {"before": before, "now": now} for name, (before, now) in self.namespaces.items()}
        return {"tables": [each.to_json() for each in self.tables], "namespaces": counts}


def standing(records: Iterable[DatasetRecord], places: Mapping[int, TablePlace]) -> MoveStatus:
    """Return where the tables of these datasets are; datasets without one are left out."""
    found = ((record, places.get(record.id)) for record in records)
    return MoveStatus(
        tuple(
            Standing(record.name, place, place.identifier == record.home)
            for record, place in found
            if place is not None and place.version is not None
        )
    )


def count_namespaces(identifiers: Iterable[TableIdentifier]) -> dict[str, int]:
    """Return how many tables are in each namespace, whose levels are joined by dots, by name."""
    counts: dict[str, int] = {}
    for identifier in identifiers:
        name = ".".join(identifier.namespace)
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))
