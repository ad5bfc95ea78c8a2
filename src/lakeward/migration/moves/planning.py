"""Which tables are not where their datasets' names say, where each goes, and what is in the way. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakeward.control.moves import Relocation
from lakeward.control.names import parse_levels
from lakeward.control.table_places import TablePlace
from lakeward.control.tree import DatasetRecord
from lakeward.errors import UnknownObject
from lakeward.types.schema import name_key

Obstacle = Callable[[DatasetRecord, Relocation], str | None]
"""Says what in the catalog is in the way of a move; None: nothing."""

NO_TABLE = "it has no Iceberg table"


@dataclass(frozen=True)
class PlannedMove:
    """A dataset, by its full name, and from where to where its table goes."""

    dataset: str
    relocation: Relocation

    def explain(self) -> str:
        """Return the literal action."""
        source, target = self.relocation.source, self.relocation.target
        return f"{self.dataset}: give table {source} the name {target} in the catalog"

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        source, target = self.relocation.source, self.relocation.target
        return {"dataset": self.dataset, "from": list(source.parts), "to": list(target.parts)}


@dataclass(frozen=True)
class Unmovable:
    """A dataset whose table is not moved now, and why."""

    dataset: str
    reason: str

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return dict(vars(self))


@dataclass(frozen=True)
class MovePlan:
    """What a sweep would do.

    Args:
        moves: the tables that would be moved, in order.
        refused: those that are elsewhere, too, and can't be moved now.
        skipped: datasets without an Iceberg table.
        at_home: how many tables are where they belong.
        left: how many come after the limit; what is in the way of them was not looked at.
    """

    moves: tuple[PlannedMove, ...]
    refused: tuple[Unmovable, ...]
    skipped: tuple[Unmovable, ...]
    at_home: int
    left: int

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            "moves": [each.to_json() for each in self.moves],
            "refused": [each.to_json() for each in self.refused],
            "skipped": [each.to_json() for each in self.skipped],
            "at_home": self.at_home,
            "left": self.left,
        }


def selected(records: Sequence[DatasetRecord], words: Sequence[str]) -> list[DatasetRecord]:
    """Return the datasets that words name, by their own full name or by that of their schema, each once, by name.

    Args:
        records: all datasets, by name.
        words: `catalog.schema.dataset` or `catalog.schema`, of names or slugs; none: all datasets.

    Raises:
        UnknownObject: one of the words fits nothing.
    """
    chosen: set[int] = set()
    for word in words:
        fitting = [record.id for record in records if _fits(record, word)]
        if not fitting:
            raise UnknownObject(
                f"there is no dataset {word}, and no schema of that name that has any",
                safe="nothing was changed",
                next_step="`lakeward dataset list` shows what there is",
                name=word,
            )
        chosen.update(fitting)
    return [record for record in records if record.id in chosen] if words else list(records)


def _fits(record: DatasetRecord, word: str) -> bool:
    path = (record.path.catalog, record.path.schema, record.path.dataset)
    for count in (3, 2):
        levels = parse_levels(word, count)
        if levels is not None:
            wanted = [name_key(level) for level in levels]
            return any([name_key(level) for level in names[:count]] == wanted for names in (path, record.slugs))
    return False


def to_home(record: DatasetRecord) -> Relocation | None:
    """Return the move that brings a dataset's table where it belongs; None: there it is."""
    move = Relocation(record.identifier, record.home)
    return move if move.source != move.target else None


def plan_moves(
    records: Iterable[DatasetRecord],
    places: Mapping[int, TablePlace],
    obstacle: Obstacle,
    limit: int | None = None,
) -> MovePlan:
    """Say which tables go where.

    Args:
        records: the datasets, in the order in which they are moved.
        places: where tables are, by dataset id.
        obstacle: asks the catalog.
        limit: plan so many moves at most; None: all.
    """
    moves: list[PlannedMove] = []
    refused: list[Unmovable] = []
    skipped: list[Unmovable] = []
    at_home = left = 0
    for record in records:
        place, move = places.get(record.id), to_home(record)
        if place is None:
            continue  # purged since
        if place.version is None:
            skipped.append(Unmovable(record.name, NO_TABLE))
        elif move is None:
            at_home += 1
        elif limit is not None and len(moves) >= limit:
            left += 1
        elif (reason := _in_the_way(record, place, move, obstacle)) is not None:
            refused.append(Unmovable(record.name, reason))
        else:
            moves.append(PlannedMove(record.name, move))
    return MovePlan(tuple(moves), tuple(refused), tuple(skipped), at_home, left)


def plan_undo(
    records: Iterable[DatasetRecord], places: Mapping[int, TablePlace], obstacle: Obstacle
) -> tuple[list[PlannedMove], list[Unmovable]]:
    """Say which moves would be taken back, and which can't be. Datasets without one are in neither list."""
    moves: list[PlannedMove] = []
    refused: list[Unmovable] = []
    for record in records:
        place = places.get(record.id)
        move = move_back(place) if place is not None else None
        if place is None or move is None:
            continue
        reason = _in_the_way(record, place, move, obstacle)
        if reason is not None:
            refused.append(Unmovable(record.name, reason))
        else:
            moves.append(PlannedMove(record.name, move))
    return moves, refused


def move_back(place: TablePlace) -> Relocation | None:
    """Return the move that takes a table's newest one back; None: it has none, or that was done already."""
    if place.last is None or place.taken_back:
        return None
    return place.last.relocation.back()


def _in_the_way(record: DatasetRecord, place: TablePlace, move: Relocation, obstacle: Obstacle) -> str | None:
    if record.status == "diverged":
        return "it has diverged: another engine moved its table's main branch"
    if place.backfill:
        return "it is being backfilled"
    if place.identifier != move.source:
        return f"its table is {place.identifier} now, not {move.source}"
    return obstacle(record, move)
