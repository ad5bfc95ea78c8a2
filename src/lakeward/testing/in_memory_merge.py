"""What a keyed write makes of a dataset's rows, said as plainly as Python can: the model for the arms that are fast.

Rows are matched in a dict, one by one, and compared as Python values. Nothing of it is SQL, so that it can't be wrong
in the way that the others are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakeward.storage.duck import Duck
from lakeward.storage.identity import IdentityCounter
from lakeward.storage.staged_batch import StagedBatch
from lakeward.storage.table import TableRef
from lakeward.storage.verbs import Verb
from lakeward.types.schema import IDENTITY_COLUMNS, OP

Key = tuple[object, ...]


@dataclass
class Merge:
    """What is to be done, by row numbers: `old` ones of the dataset, `new` ones of the input.

    Args:
        added, updated, unchanged, skipped: rows of the input; an updated one stands with the old row that it replaces.
        deleted: rows of the dataset.
    """

    added: list[int] = field(default_factory=list)
    updated: dict[int, int] = field(default_factory=dict)
    unchanged: int = 0
    skipped: int = 0
    deleted: set[int] = field(default_factory=set)

    @property
    def changes(self) -> bool:
        """Whether any row of the dataset changes."""
        return bool(self.added or self.updated or self.deleted)


def merge(duck: Duck, table: TableRef, verb: Verb, old: pa.Table, new: pa.Table) -> Merge:
    """Find out what a keyed write does.

    Args:
        duck: where the input is checked, as for every arm.
        table: the dataset.
        verb: a keyed one.
        old: all rows of the dataset.
        new: all rows of the input, in the verb's `input_schema`.

    Raises:
        DuplicateKey: a key of the input comes twice, there or in the dataset.
        ValueRefused: an `__op` that there is not.
    """
    names = table.schema.primary_key
    places: dict[Key, list[int]] = {}
    for row, key in enumerate(_keys(old, names)):
        places.setdefault(key, []).append(row)
    keys = _keys(new, names)
    with duck.session() as connection:
        batch = StagedBatch(connection, table, verb)
        batch.load(new.to_reader())
        twice = [position for position, key in enumerate(keys) if len(places.get(key, ())) > 1]
        batch.refuse_ambiguous(f"SELECT unnest({twice}::BIGINT[]) AS position")
    operations = new[OP].to_pylist() if verb.per_row else [None] * len(keys)
    columns = verb.input_schema(table.schema).names[: -1 if verb.per_row else None]
    before, after = (rows.select(columns).to_pylist() for rows in (old, new))
    found = Merge()
    for position, (key, operation) in enumerate(zip(keys, operations, strict=True)):
        there = places.get(key)
        if verb.removes or operation == "delete":
            if there is None:
                found.skipped += 1
            else:
                found.deleted.add(there[0])
        elif there is None:
            found.added.append(position)
        elif not verb.updates:
            found.skipped += 1
        elif same(before[there[0]], after[position]):
            found.unchanged += 1
        else:
            found.updated[there[0]] = position
    if verb.clears:
        named = set(keys)
        found.deleted.update(row for key, rows in places.items() if key not in named for row in rows)
    return found


@dataclass(frozen=True)
class MergedRows:
    """The rows that a keyed write leaves, with identity; and what became different."""

    rows: pa.Table
    difference: tuple[pa.Table, pa.Table]
    """The business columns of the rows that are there only afterwards, and of those only before."""


def merged_rows(found: Merge, old: pa.Table, new: pa.Table, counter: IdentityCounter, version: int) -> MergedRows:
    """Do what `merge` found.

    Args:
        found: that.
        old: all rows of the dataset, with identity.
        new: all rows of the input.
        counter: numbers the added rows, in the order of the input.
        version: the one that is written.
    """
    columns = old.column_names[: -len(IDENTITY_COLUMNS)]
    business, identity = (
        new.select([name for name in columns if name in new.column_names]),
        old.select(IDENTITY_COLUMNS),
    )
    updated = old.slice(0, 0)
    if found.updated:
        values, kept = _taken(business, found.updated.values()), _taken(identity, found.updated)
        now = pa.array([version] * kept.num_rows, pa.int64())
        updated = pa.Table.from_arrays([*values.columns, *kept.columns[:-1], now], schema=old.schema)
    added = old.slice(0, 0)
    if found.added:
        (batch,) = _taken(business, found.added).combine_chunks().to_batches()
        added = pa.Table.from_batches([counter.number(batch)], old.schema)
    # An updated row takes the place of the old one, an added one comes behind all.
    replaced = {row: old.num_rows + number for number, row in enumerate(found.updated)}
    places = [replaced.get(row, row) for row in range(old.num_rows) if row not in found.deleted]
    places += range(old.num_rows + updated.num_rows, old.num_rows + updated.num_rows + added.num_rows)
    afterwards = pa.concat_tables([updated, added]).select(columns)
    before = _taken(old, [*found.updated, *found.deleted]).select(columns)
    return MergedRows(_taken(pa.concat_tables([old, updated, added]), places), (afterwards, before))


def same(left: object, right: object) -> bool:
    """Say whether two values count as equal.

    NaN equals NaN, 0.0 equals -0.0, null equals null and no list or struct, and nested values are compared by value.

    Example:
        >>> same({"a": [float("nan"), None]}, {"a": [float("nan"), None]}), same([], None), same([None], [])
        (True, False, False)
    """
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (left != left and right != right)
    return left == right


def _taken(rows: pa.Table, places: Iterable[int]) -> pa.Table:
    return rows.take(pa.array(places, pa.int64()))


def _keys(rows: pa.Table, names: Sequence[str]) -> list[Key]:
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))
