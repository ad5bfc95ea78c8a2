"""What two versions of a dataset differ by, found by comparing all of their rows in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from support.arms import HeldDataset

Row = dict[str, Any]
Frozen = tuple[tuple[str, str], ...]

IDENTITY = ("__row_index", "__row_id", "__created_at", "__version")
KEYS = 40
"""So few keys that a sequence of writes meets the same ones again and again."""


def row(id_: int, random_: random.Random) -> Row:
    return {"id": id_, "note": random_.choice([None, "", "a", "b"]), "tags": random_.choice([None, [], ["x", None]])}


def writes(random_: random.Random, verbs: Sequence[str]) -> Iterator[tuple[str, list[Row]]]:
    """Yield writes without an end: a verb, and its input."""
    while True:
        verb = random_.choice(verbs)
        ids = random_.sample(range(KEYS), random_.randint(1, 15))
        rows = [row(id_, random_) for id_ in ids]
        if verb == "changes":
            rows = [{**each, "__op": random_.choice(["insert", "update", "delete"])} for each in rows]
        if verb == "delete":
            rows = [{"id": id_} for id_ in ids]
        yield verb, rows


def all_versions(dataset: HeldDataset, **request: Any) -> dict[int, list[Row]]:
    """Return the rows of every version, with their identity; before the first there are none."""
    return {
        0: [],
        **{
            version: dataset.rows(version=version, identity=True, **request) for version in dataset.committed_versions()
        },
    }


def expected(
    old: list[Row], new: list[Row], *, before: bool = True, key: Callable[[Row], Any] | None = None
) -> Counter:
    """Return the changes from the rows of one version to those of another, as `frozen` ones.

    Args:
        old, new: with their identity columns.
        before: also the old images of updated rows.
        key: what rows are matched by; None: their `__row_id`.
    """

    def identity(each: Row) -> tuple[int, int]:
        return each["__row_id"], each["__version"]

    key = key or (lambda each: each["__row_id"])
    stayed = {identity(each) for each in old} & {identity(each) for each in new}
    went = {key(each): each for each in old if identity(each) not in stayed}
    came = {key(each): each for each in new if identity(each) not in stayed}
    changes = [{"__op": "update" if each in went else "insert", **image} for each, image in came.items()]
    changes += [{"__op": "delete", **image} for each, image in went.items() if each not in came]
    changes += [{"__op": "before", **image} for each, image in went.items() if before and each in came]
    return Counter(map(frozen, changes))


def frozen(row: Row) -> Frozen:
    """Return a row in a form that can be counted."""
    return tuple((name, repr(value)) for name, value in row.items())


def plain(row: Row) -> Row:
    """Return a row without its identity columns."""
    return {name: value for name, value in row.items() if name not in IDENTITY}
