"""Differences that are known and accepted: rules for a column, with an owner, a reason and an end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from lakeward.control.ignore_rules import Column, IgnoreRule
from lakeward.control.tree import DatasetRecord
from lakeward.errors import UnknownObject, UsageError
from lakeward.migration.stage import Rooms


@dataclass(frozen=True)
class Rule:
    """A rule under its column's name.

    Args:
        column: the column; None: the dataset has it no more.
        reason, owner, until, expired: see `IgnoreRule`.
    """

    column: str | None
    reason: str
    owner: str
    until: datetime
    expired: bool

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "until": self.until.isoformat()}


@dataclass(frozen=True)
class Accepted:
    """The columns in which differences are accepted now, and those whose rule has expired."""

    columns: frozenset[str]
    expired: tuple[str, ...]


def rules_of(rooms: Rooms, dataset: DatasetRecord) -> list[Rule]:
    """Return the rules of a dataset, also those that have expired."""
    names = {column.field_id: column.name for column in dataset.schema.columns}
    return [_named(each, names.get(each.field_id)) for each in rooms.ignore_rules.of(dataset.id)]


def accepted(rooms: Rooms, dataset: DatasetRecord) -> Accepted:
    """Return what a comparison of a dataset does not count."""
    rules = [(rule.column, rule.expired) for rule in rules_of(rooms, dataset) if rule.column is not None]
    return Accepted(
        frozenset(column for column, expired in rules if not expired),
        tuple(column for column, expired in rules if expired),
    )


def ignore(
    rooms: Rooms,
    dataset: DatasetRecord,
    column: str,
    *,
    reason: str,
    until: datetime,
    actor: str,
    owner: str | None = None,
) -> Rule:
    """Accept differences in a column until a moment. A rule that the column has already is replaced.

    Raises:
        SchemaError: there is no such column.
        UsageError: it is part of the key, whose differences are missing rows; or no column would be left that counts;
            or there is no reason; or the end is past.
    """
    of = _column(dataset, column)
    why = _why_not(rooms, dataset, column, reason, until)
    if why is not None:
        raise UsageError(
            f"dataset {dataset.name}: differences in column {column!r} can't be ignored: {why}",
            safe="nothing was changed",
            dataset=dataset.name,
            column=column,
        )
    owner = owner or actor
    rooms.ignore_rules.put(of, reason=reason.strip(), owner=owner, until=until, actor=actor)
    return Rule(column, reason.strip(), owner, until, expired=False)


def count_again(rooms: Rooms, dataset: DatasetRecord, column: str, *, actor: str) -> None:
    """Take the rule of a column away, so that its differences count again.

    Raises:
        UnknownObject: it has none.
    """
    if not rooms.ignore_rules.remove(_column(dataset, column), actor=actor):
        raise UnknownObject(
            f"dataset {dataset.name} has no rule for column {column!r}",
            next_step=f"lakeward flip ignore list {dataset.name}",
            dataset=dataset.name,
            column=column,
        )


def _column(dataset: DatasetRecord, name: str) -> Column:
    return Column(dataset.id, dataset.schema.column(name).field_id, f"{dataset.name} {name}", dataset.slugs)


def _why_not(rooms: Rooms, dataset: DatasetRecord, column: str, reason: str, until: datetime) -> str | None:
    if column in dataset.schema.primary_key:
        return "it is part of the primary key, and rows of other keys are missing rows"
    if set(dataset.schema.names) <= accepted(rooms, dataset).columns | {column}:
        return "no column would be left to compare"
    if not reason.strip():
        return "a rule needs a reason"
    if until <= datetime.now(UTC):
        return f"its end, {until:%Y-%m-%d %H:%M} UTC, is past"
    return None


def _named(rule: IgnoreRule, column: str | None) -> Rule:
    return Rule(column, rule.reason, rule.owner, rule.until, rule.expired)
