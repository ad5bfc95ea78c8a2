"""Pages of what is numbered as it comes, newest first: each goes on behind the last number of the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from fastapi import Query

from lakeward.server.pages import LARGEST

Thing = TypeVar("Thing")

Limit = Annotated[int, Query(ge=1, le=1000, description="so many at most")]
Before = Annotated[int | None, Query(ge=0, le=LARGEST, alias="page", description="`next` of the page before")]


def cut(found: Sequence[Thing], limit: int, number: Callable[[Thing], int]) -> tuple[Sequence[Thing], int | None]:
    """Return what is on a page, and the page that follows; None: there is none.

    Args:
        found: newest first; one more than `limit` if there are so many.
        limit: of the page.
        number: says what number each has.

    Example:
        >>> cut([5, 4, 2], 2, int)
        ([5, 4], 4)
    """
    shown = found[:limit]
    return shown, number(shown[-1]) if len(found) > limit else None
