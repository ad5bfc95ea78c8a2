"""Lists that are too long for one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import BeforeValidator

Item = TypeVar("Item")


def _or_none(value: object) -> object:
    """Take an empty field of a form for none."""
    return None if value == "" else value


Number = Annotated[int | None, Query(ge=0, le=2**63 - 1), BeforeValidator(_or_none)]
"""A number of a form, which may be left empty."""


@dataclass(frozen=True)
class Paged(Generic[Item]):
    """One page of a list.

    Args:
        items: of the page.
        number: of the page, from 1.
        first: the place of its first item, from 1; 0: it has none.
        total: how many items the list has.
        more: whether a page follows.
    """

    items: Sequence[Item]
    number: int
    first: int
    total: int
    more: bool

    @property
    def last(self) -> int:
        """The place of its last item."""
        return self.first + len(self.items) - 1 if self.items else 0


def paged(items: Sequence[Item], number: int | None, size: int) -> Paged[Item]:
    """Return a page of a list: the first if there is no such one."""
    number = number or 1
    start = (number - 1) * size
    if start >= len(items):
        number, start = 1, 0
    found = items[start : start + size]
    return Paged(found, number, start + 1 if found else 0, len(items), start + size < len(items))
