"""What the drill writes, and what each write makes of a dataset's rows: in plain Python, one row after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakeward.storage.verbs import VERBS

COLUMNS = {"id": "long", "note": "string"}
"""The columns of every dataset of the drill."""

PRIMARY_KEY = ("id",)

Row = tuple[int, str]


@dataclass(frozen=True)
class Content:
    """The rows of one version, in the order of their places.

    Args:
        rows: id and note of each.
        places: the `__row_index` of each.
        next_place: what the next row gets.
    """

    rows: tuple[Row, ...] = ()
    places: tuple[int, ...] = ()
    next_place: int = 0


NOTHING = Content()
"""What there is before the first version."""


@dataclass(frozen=True)
class Write:
    """One build that a process is asked for.

    Args:
        number: which one; grows, and stands in the ledger as the watermark that the build sets.
        outputs: dataset name, mode and ids of the rows, for each output. No id comes twice in one.
    """

    number: int
    outputs: tuple[tuple[str, str, tuple[int, ...]], ...]

    @property
    def label(self) -> str:
        """Its name: in the ledger that of the pipeline, in every row the note. So whatever it updates differs."""
        return f"drill {self.number}"

    def mode(self, dataset: str) -> str:
        """Return how it writes a dataset."""
        return next(mode for name, mode, _ in self.outputs if name == dataset)

    def rows(self, dataset: str) -> list[Row]:
        """Return the rows that it brings to a dataset."""
        return [(number, self.label) for name, _, ids in self.outputs if name == dataset for number in ids]

    def given(self, dataset: str) -> list[dict[str, Any]]:
        """Return those rows as the mode takes them. Of `changes`, every other one asks for a deletion."""
        rows = [{"id": number, "note": note} for number, note in self.rows(dataset)]
        if VERBS[self.mode(dataset)].removes:
            return [{"id": row["id"]} for row in rows]
        if VERBS[self.mode(dataset)].per_row:
            return [{**row, "__op": "delete" if place % 2 else "update"} for place, row in enumerate(rows)]
        return rows

    def applied(self, dataset: str, before: Content) -> Content:
        """Return what it makes of a dataset."""
        verb = VERBS[self.mode(dataset)]
        if verb.name == "replace":
            before = NOTHING
        held = dict(zip(before.places, before.rows, strict=True))
        place_of = {row[0]: place for place, row in held.items()} if verb.keyed else {}
        next_place = before.next_place
        for given, row in zip(self.given(dataset), self.rows(dataset), strict=True):
            place = place_of.get(row[0])
            if verb.removes or given.get("__op") == "delete":
                if place is not None:
                    del held[place]
            elif place is None:
                held[next_place] = row
                next_place += 1
            elif verb.updates:
                held[place] = row
        if verb.keyed and verb.clears:
            named = {row[0] for row in self.rows(dataset)}
            held = {place: row for place, row in held.items() if row[0] in named}
        places = tuple(sorted(held))
        return Content(tuple(held[place] for place in places), places, next_place)

    def to_json(self) -> dict[str, object]:
        """Return it as a worker is told."""
        return {"number": self.number, "outputs": [[name, mode, list(ids)] for name, mode, ids in self.outputs]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Write:
        """Read what `to_json` wrote."""
        return cls(document["number"], tuple((name, mode, tuple(ids)) for name, mode, ids in document["outputs"]))


class Chooser:
    """Chooses what to write. Appended ids are new ones, so that no key is ever there twice.

    Args:
        numbers: numbers writes and rows.
        common: ids that may be written by key from the beginning, by whoever else writes, too; never appended.
    """

    MOST_KNOWN = 30

    def __init__(self, numbers: Iterator[int], common: Sequence[int] = ()) -> None:
        self._numbers = numbers
        self._common = common
        self._known: list[int] = []
        self._new: list[int] = []

    def settled(self) -> None:
        """Say that every write so far has ended: from now on their ids may be written by key, too."""
        self._known = [*self._known, *self._new][-self.MOST_KNOWN :]
        self._new = []

    def write(self, generator: random.Random, outputs: Sequence[tuple[str, str]], most: int = 5) -> Write:
        """Return a write of these datasets in these modes.

        Whatever the mode, it changes something, but for `delete`: a row of each write is new, or an update.
        """
        return Write(
            next(self._numbers), tuple((name, mode, self._ids(generator, mode, most)) for name, mode in outputs)
        )

    def _ids(self, generator: random.Random, mode: str, most: int) -> tuple[int, ...]:
        count = generator.randint(1, most)
        known = [*self._common, *self._known]
        old = generator.sample(known, min(generator.randint(0, most), len(known)))
        if not VERBS[mode].keyed:
            return self._fresh(count)
        if mode == "delete":
            return tuple(old) or self._fresh(1)
        if mode == "append_new":
            return (*old, *self._fresh(count))
        ids = [*old, *self._fresh(1 if not old else generator.randint(0, 2))]
        generator.shuffle(ids)
        return tuple(ids)

    def _fresh(self, count: int) -> tuple[int, ...]:
        ids = tuple(next(self._numbers) for _ in range(count))
        self._new.extend(ids)
        return ids
