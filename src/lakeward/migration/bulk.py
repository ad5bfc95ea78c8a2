"""Flips many datasets, one after the other: which, in which order, and what became of each.

Consumers go before producers: a dataset that nobody reads first, then those that only such ones read, and so on through
the graph of the applied pipelines. So whatever turns out on the new arm is seen where least depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter

from lakeward.control.names import quote_level
from lakeward.control.tree import DatasetRecord
from lakeward.errors import LakewardError, UnknownObject, UsageError
from lakeward.migration.flip import Flip
from lakeward.migration.flip_status import StageState, Step
from lakeward.migration.options import Options
from lakeward.types.schema import name_key

Edge = tuple[str, str]
"""A dataset that a pipeline reads, and one that it writes."""

FLIPPED, DONE, FAILED, LEFT = "flipped", "done", "failed", "left"


@dataclass(frozen=True)
class Outcome:
    """What became of one dataset.

    Args:
        dataset: its name.
        outcome: `flipped`; `done`: it was so before; `failed`; `left`: it came after the limit.
        steps: the stages that were run.
        reason: why it failed, in words; None: it did not.
        exit_code: the error's.
    """

    dataset: str
    outcome: str
    steps: tuple[Step, ...] = ()
    reason: str | None = None
    exit_code: int = 0

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "steps": [step.to_json() for step in self.steps]}


def leaves_first(records: Sequence[DatasetRecord], edges: Iterable[Edge]) -> list[DatasetRecord]:
    """Order datasets so that each comes after all that are made from it; by name where that leaves a choice.

    Raises:
        UsageError: pipelines read each other's outputs in a circle.
    """
    by_key = {name_key(record.name): record for record in records}
    sorter = TopologicalSorter[str](dict.fromkeys(by_key, ()))
    for source, output in edges:
        if name_key(source) != name_key(output):
            sorter.add(name_key(source), name_key(output))
    try:
        sorter.prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        raise UsageError(
            f"pipelines read each other's outputs in a circle: {' → '.join(circle)}",
            safe="nothing was changed",
            next_step="choose another order: --order name",
        ) from None
    ordered: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        ordered += ready
        sorter.done(*ready)
    return [by_key[key] for key in ordered if key in by_key]


def _by_size(records: Sequence[DatasetRecord], _: Iterable[Edge]) -> list[DatasetRecord]:
    return sorted(records, key=lambda record: (record.row_count, record.name))


def _by_name(records: Sequence[DatasetRecord], _: Iterable[Edge]) -> list[DatasetRecord]:
    return sorted(records, key=lambda record: record.name)


ORDERS: Mapping[str, Callable[[Sequence[DatasetRecord], Iterable[Edge]], list[DatasetRecord]]] = {
    "leaves-first": leaves_first,
    "size": _by_size,
    "name": _by_name,
}
"""How datasets may be ordered; by `size`, those with the fewest rows come first."""


def selected(records: Sequence[DatasetRecord], names: Sequence[str], patterns: Sequence[str]) -> list[DatasetRecord]:
    """Return the datasets that are named, and those whose name is like one of some patterns, each once.

    A pattern (`*`, `?`, `[abc]`) is held against the full name, and against the name without its catalog.

    Raises:
        UnknownObject: one of the names or patterns fits nothing.
    """
    found: dict[int, DatasetRecord] = {}
    for asked, is_pattern in [*((name, False) for name in names), *((pattern, True) for pattern in patterns)]:
        fitting = [record for record in records if _fits(record, asked, is_pattern)]
        if not fitting:
            raise UnknownObject(
                f"no dataset's name is {'like ' if is_pattern else ''}{asked}",
                safe="nothing was changed",
                next_step="`lakeward dataset list` shows what there is",
                dataset=asked,
            )
        found.update((record.id, record) for record in fitting)
    return list(found.values())


def _fits(record: DatasetRecord, asked: str, is_pattern: bool) -> bool:
    full, wanted = name_key(record.name), name_key(asked)
    if not is_pattern:
        return full == wanted or name_key(".".join(record.slugs)) == wanted
    below = name_key(f"{quote_level(record.path.schema)}.{quote_level(record.path.dataset)}")
    return fnmatchcase(full, wanted) or fnmatchcase(below, wanted)


class BulkFlip:
    """Flips of many datasets to one arm.

    Args:
        records: all datasets.
        edges: what the applied pipelines read and write.
        flip: makes the flip of a dataset.
    """

    def __init__(
        self, records: Sequence[DatasetRecord], edges: Iterable[Edge], flip: Callable[[DatasetRecord], Flip]
    ) -> None:
        self._records = records
        self._edges = list(edges)
        self._flip = flip

    def choose(
        self, names: Sequence[str] = (), select: Sequence[str] = (), order: str = "leaves-first"
    ) -> list[DatasetRecord]:
        """Return which datasets are flipped, in order.

        Args:
            names, select: see `selected`.
            order: one of `ORDERS`.

        Raises:
            UnknownObject: a name or pattern fits nothing, or there is no such order.
            UsageError: see `leaves_first`.
        """
        if order not in ORDERS:
            raise UnknownObject(f"datasets can't be ordered by {order!r}; only by {', '.join(ORDERS)}", order=order)
        return ORDERS[order](selected(self._records, names, select), self._edges)

    def explain(
        self, chosen: Iterable[DatasetRecord], to: str, limit: int | None = None, options: Options | None = None
    ) -> Iterator[tuple[DatasetRecord, list[StageState]]]:
        """Yield what `run` would do with each dataset that it would take up. Changes nothing."""
        taken = 0
        for record in chosen:
            if record.arm == to:
                continue
            if limit is not None and taken >= limit:
                return
            taken += 1
            states = self._flip(record).explain(to, options)
            yield record, [state for state in states if state.automatic and not state.done]

    def run(
        self, chosen: Iterable[DatasetRecord], to: str, limit: int | None = None, options: Options | None = None
    ) -> Iterator[Outcome]:
        """Flip datasets one after the other, and yield what became of each. One that fails is passed over.

        Args:
            chosen: which, in order.
            to: the arm to flip to. One that it serves already is done.
            limit: take up so many at most; None: all.
            options: how each is carried out.
        """
        taken = 0
        for record in chosen:
            flip = self._flip(record)
            if flip.status().primary == to:
                yield Outcome(record.name, DONE)
            elif limit is not None and taken >= limit:
                yield Outcome(record.name, LEFT)
            else:
                taken += 1
                yield _flipped(record.name, flip, to, options)


def _flipped(name: str, flip: Flip, to: str, options: Options | None) -> Outcome:
    try:
        return Outcome(name, FLIPPED, tuple(flip.run(to, options=options)))
    except LakewardError as error:
        return Outcome(name, FAILED, reason=error.message, exit_code=error.exit_code)
