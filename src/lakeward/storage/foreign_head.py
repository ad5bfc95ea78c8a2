"""What another engine did to a dataset's table, as an arm finds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ForeignHead:
    """What another engine did to a table.

    Args:
        snapshot: where its `main` is; None: it has none.
        why: what is wrong with that, as part of a sentence.
        columns: what it did to columns or partitions; None: nothing.
        behind: our snapshot goes on from there: it was set back.
        lost: our snapshot is not in the table any more.
    """

    snapshot: int | None
    why: str
    columns: str | None = None
    behind: bool = False
    lost: bool = False


@dataclass(frozen=True)
class Survey:
    """The rows of a foreign snapshot, compared with ours by `__row_id`.

    Args:
        rows, added, updated, unchanged, deleted: counts; `rows = added + updated + unchanged`.
        nulls: rows of which an identity column is null.
        repeated: rows whose `__row_id` another one has, too.
        beyond: rows with an id, position or version that nothing could have given them.
        unstamped: added or updated rows that claim to be of a version that we know: reading since that misses them.
        misfit: it was written under other columns than the table has now.
        next_row_id, next_row_index: what the next row of ours gets, so that no id comes twice.
    """

    rows: int
    added: int
    updated: int
    unchanged: int
    deleted: int
    nulls: int
    repeated: int
    beyond: int
    unstamped: int
    misfit: bool
    next_row_id: int
    next_row_index: int

    @property
    def unsound(self) -> str | None:
        """What is wrong with the rows, for people; None: nothing."""
        found = {
            "without identity": self.nulls,
            "with another row's __row_id": self.repeated,
            "with an identity that was never given": self.beyond,
        }
        parts = [f"{rows:,} rows {what}" for what, rows in found.items() if rows]
        return ", ".join([*parts, *(["all rows written under other columns"] if self.misfit else [])]) or None
