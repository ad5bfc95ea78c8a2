"""Moves tables, one dataset after the other, and takes moves back. What becomes of each is told, and the next goes on.

Nothing of a sweep is kept but what it did: to go on after it was cut short, the same is asked for again. A move that
was under way then is finished first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lakeward.access.guard import require
from lakeward.control.audit import note
from lakeward.control.moves import Relocation
from lakeward.control.table_places import TablePlace, TablePlaces
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ConflictError, ControlError, LakewardError, MoveRefused, Stopped, UsageError
from lakeward.migration.moves.planning import (
    NO_TABLE,
    MovePlan,
    PlannedMove,
    Unmovable,
    move_back,
    plan_moves,
    plan_undo,
    selected,
    to_home,
)
from lakeward.migration.moves.standing import MoveStatus, count_namespaces, standing
from lakeward.storage.moving import Moving
from lakeward.storage.recovery import Recovered

MOVED, DONE, SKIPPED, FAILED, LEFT = "moved", "done", "skipped", "failed", "left"
OUTCOMES = (MOVED, DONE, SKIPPED, FAILED, LEFT)
"""`moved`: the table was elsewhere when its turn came, and is there now; `done`: it was there already; `skipped`: there
is none; `left`: it comes after the limit."""


@dataclass(frozen=True)
class Outcome:
    """What became of one dataset's table.

    Args:
        dataset: its full name.
        outcome: one of `OUTCOMES`.
        relocation: from where to where; None: it was not to be moved.
        way: how the catalog did it.
        reason: why it failed or was passed over, in words.
        exit_code: the error's.
    """

    dataset: str
    outcome: str
    relocation: Relocation | None = None
    way: str | None = None
    reason: str | None = None
    exit_code: int = 0

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        move = self.relocation
        names = {"from": list(move.source.parts), "to": list(move.target.parts)} if move is not None else {}
        told = {name: value for name, value in vars(self).items() if name != "relocation"}
        return {**told, **names}


def exit_code_of(outcomes: Iterable[Outcome]) -> int:
    """Return that of a whole sweep: 0; 6 if conflicts are all that kept it from being 0; else 1."""
    codes = {each.exit_code for each in outcomes if each.outcome == FAILED}
    return 0 if not codes else ConflictError.exit_code if codes == {ConflictError.exit_code} else 1


def to_retry(outcomes: Iterable[Outcome]) -> tuple[list[PlannedMove], list[Unmovable]]:
    """Return the moves that failed, and why each did."""
    failed = [
        (PlannedMove(each.dataset, each.relocation), Unmovable(each.dataset, each.reason or ""))
        for each in outcomes
        if each.outcome == FAILED and each.relocation is not None
    ]
    return [move for move, _ in failed], [reason for _, reason in failed]


class Sweep:
    """The moves of a workspace's tables: planned, done, taken back, and where the tables are.

    Args:
        tree: names of datasets.
        places: where their tables are.
        moving: moves one.
        recover: finishes what a dead process left of a dataset.
    """

    def __init__(
        self, tree: Tree, places: TablePlaces, moving: Moving, recover: Callable[[int], Sequence[Recovered]]
    ) -> None:
        self.places = places
        self._moving = moving
        self._tree = tree
        self._recover = recover

    def choose(self, *words: str) -> list[DatasetRecord]:
        """Return the datasets that words name, by themselves or by their schema; no word: all of them.

        Raises:
            UnknownObject: a word fits nothing.
        """
        return selected(self._tree.datasets(), words)

    def plan(self, *words: str, limit: int | None = None) -> MovePlan:
        """Say which tables are not where they belong, where they go, and what is in the way. Changes nothing.

        Args:
            words: `catalog.schema.dataset` or `catalog.schema`; none: all datasets.
            limit: plan so many moves at most.

        Raises:
            UnknownObject: a word fits nothing.
            CatalogError: the catalog does not answer.
        """
        return plan_moves(self.choose(*words), self.places.all(), self._moving.obstacle, limit)

    def plan_undo(self, *words: str) -> tuple[list[PlannedMove], list[Unmovable]]:
        """Say which moves `undo` would take back, and which it can't. Changes nothing."""
        return plan_undo(self.choose(*words), self.places.all(), self._moving.obstacle)

    def apply(self, *words: str, limit: int | None = None) -> Iterator[Outcome]:
        """Move tables where they belong, one after the other, and yield what became of each.

        Args:
            words: `catalog.schema.dataset` or `catalog.schema`; none: all datasets.
            limit: take up so many at most.

        Raises:
            UnknownObject: a word fits nothing.
            ControlError: Postgres can't be reached; what was moved stays so, and the same can be asked for again.

        Example:
            >>> [each.outcome for each in ws.moves.apply("main.sales")]
            ['skipped']
        """
        records, taken = self.choose(*words), 0
        holding = {dataset_id for dataset_id, place in self.places.all().items() if place.version is not None}
        for record in records:
            move = to_home(record)
            if record.id not in holding:
                yield Outcome(record.name, SKIPPED, reason=NO_TABLE)
            elif move is None:
                yield Outcome(record.name, DONE)
            elif limit is not None and taken >= limit:
                yield Outcome(record.name, LEFT, move)
            else:
                taken += 1
                yield self._attempt(record, move, "move.apply")

    def bring(self, record: DatasetRecord, move: Relocation, *, writer: str = "move.apply") -> Outcome:
        """Move one dataset's table, to wherever that is, and say what became of it; see `apply`.

        Args:
            record: which dataset.
            move: from where its table is, to where it is wanted.
            writer: the named place in the product that asks for it.
        """
        return self._attempt(record, move, writer)

    def apply_list(self, moves: Iterable[PlannedMove], limit: int | None = None) -> Iterator[Outcome]:
        """Do the moves of a list, as `apply` does. Only those that bring a table where it belongs are done.

        A dataset that was dropped or renamed since is a failure, and the next one goes on.
        """
        taken = 0
        for planned in moves:
            if limit is not None and taken >= limit:
                yield Outcome(planned.dataset, LEFT, planned.relocation)
                continue
            try:
                record = self._listed(planned)
            except ControlError:
                raise
            except LakewardError as error:
                taken += 1
                yield _failed(planned.dataset, planned.relocation, error)
                continue
            outcome = self._attempt(record, planned.relocation, "move.apply")
            taken += outcome.outcome != DONE
            yield outcome

    def plan_list(self, moves: Iterable[PlannedMove], limit: int | None = None) -> MovePlan:
        """Say what `apply_list` would do. Changes nothing."""
        records: list[DatasetRecord] = []
        refused: list[Unmovable] = []
        for planned in moves:
            try:
                records.append(self._listed(planned))
            except (UsageError, MoveRefused) as error:
                refused.append(Unmovable(planned.dataset, error.message))
        found = plan_moves(records, self.places.all(), self._moving.obstacle, limit)
        return replace(found, refused=(*refused, *found.refused))

    def _listed(self, planned: PlannedMove) -> DatasetRecord:
        """Return the dataset of a line of a list.

        Raises:
            UsageError: there is none of that name.
            MoveRefused: its table is somewhere else by now, or does not belong where the line says.
        """
        record, move = self._tree.dataset(planned.dataset), planned.relocation
        if move.target != record.home:
            why = f"belongs to {record.home}, and can't be moved to {move.target}"
        elif record.identifier not in (move.source, move.target):
            why = f"is {record.identifier} by now, not {move.source}"
        else:
            return record
        raise MoveRefused(
            f"the table of dataset {record.name} {why}",
            safe="nothing was changed",
            next_step="lakeward move plan",
            dataset=record.name,
        )

    def undo(self, *words: str) -> Iterator[Outcome]:
        """Take the newest move of each dataset back, one after the other, and yield what became of each.

        One that was taken back already, or never was, is `done`.

        Args:
            words: `catalog.schema.dataset` or `catalog.schema`; none: all datasets.

        Raises:
            UnknownObject: a word fits nothing.
        """
        for record in self.choose(*words):
            try:
                self._recover(record.id)
                move = move_back(self.places.of(record.id))
            except ControlError:
                raise
            except LakewardError as error:
                yield _failed(record.name, None, error)
                continue
            if move is None:
                yield Outcome(record.name, DONE)
            else:
                yield self._attempt(record, move, "move.undo")

    def status(self, *words: str) -> MoveStatus:
        """Return where the tables of the datasets are that words name; none: of all. The catalog is not asked."""
        return standing(self.choose(*words), self.places.all())

    def counts(self) -> dict[str, int]:
        """Return how many tables are in each namespace."""
        return count_namespaces(each.place.identifier for each in self.status().tables)

    def _attempt(self, record: DatasetRecord, move: Relocation, writer: str) -> Outcome:
        try:
            require("move.run", record.slugs, record.name)
            finished = any(each.outcome == "moved" for each in self._recover(record.id))
            place = self.places.of(record.id)
            if place.identifier == move.target:
                return _arrived(record, move, place) if finished else Outcome(record.name, DONE, move)
            done = self._moving.move(self._tree.by_id(record.id), move, writer=writer)
            places = {"table": str(move.source)}, {"table": str(move.target)}
            note(self._tree.database, None, "move.run", record.name, *places, record.slugs)
            return Outcome(record.name, MOVED, move, way=done.way)
        except (ControlError, Stopped):
            raise
        except ConflictError as error:
            # Another process may have done the same meanwhile, or finished what it took for abandoned.
            place = self.places.of(record.id)
            if place.identifier == move.target:
                return _arrived(record, move, place)
            return _failed(record.name, move, error)
        except LakewardError as error:
            return _failed(record.name, move, error)


def _arrived(record: DatasetRecord, move: Relocation, place: TablePlace) -> Outcome:
    return Outcome(record.name, MOVED, move, way=place.way)


def _failed(dataset: str, move: Relocation | None, error: LakewardError) -> Outcome:
    return Outcome(dataset, FAILED, move, reason=error.message, exit_code=error.exit_code)
