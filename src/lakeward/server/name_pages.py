"""Pages of what has names: each goes on behind the last name of the one before, whatever was made meanwhile."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Annotated

from fastapi import Query

Limit = Annotated[int, Query(ge=1, le=1000, description="so many at most")]
After = Annotated[str | None, Query(alias="page", description="`next` of the page before")]


def names_after(names: Sequence[str], page: str | None, limit: int) -> tuple[list[str], str | None]:
    """Return the names of a page, and the page that follows; None: there is none.

    Args:
        names: all of them.
        page: behind which name it begins; None: with the first.
        limit: how many at most.

    Example:
        >>> names_after(["c", "a", "b"], "a", 1)
        (['b'], 'b')
    """
    ordered = sorted(names)
    start = 0 if page is None else bisect_right(ordered, page)
    found = ordered[start : start + limit]
    return found, found[-1] if start + limit < len(ordered) else None
