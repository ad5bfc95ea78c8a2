"""Which rows of a table are new or were changed since it was last read, told by the transactions that wrote them.

Every row names the transaction that wrote it (`xmin`). A snapshot's horizon is the oldest transaction that was still
running then: all before it had ended, so what they committed was seen. Rows of the horizon and of all later ones are
taken again by the next read, whether they were seen or not: one that was written early and committed late is among
them, as is one of a subtransaction, whose number is higher than that of its transaction.

    changed   rows of `[horizon of the last read, now)`: each may come twice, and is known again by its key
    new       rows of `[horizon of the last read, horizon of now)`: every window is over when it is read, so that each
              row comes once, and rows behind a transaction that still runs come with a later read

A row has the last 32 bits of the number only. The distance from the horizon is taken modulo 2^32, so that no row of
the window is left out; rows that are older by a multiple of 2^32 transactions may come besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import sql

from lakeward.errors import SourceError, SourceRefused, UsageError
from lakeward.sources.connector import CHANGED, FULL, NEW, Position, ReadWindow, SourceTable

XIDS = 1 << 32
"""So many transactions a row can tell apart."""

STATE = sql.SQL(
    "SELECT CAST(CAST(pg_snapshot_xmin(now.snapshot) AS text) AS bigint) AS horizon,"
    " CAST(CAST(pg_snapshot_xmax(now.snapshot) AS text) AS bigint) AS next,"
    " CAST(CAST(CAST({} AS regclass) AS oid) AS bigint) AS relation,"
    " (SELECT CAST(oid AS bigint) FROM pg_database WHERE datname = current_database()) AS database,"
    " CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,"
    " has_function_privilege('pg_control_system()', 'execute') AS told"
    " FROM (SELECT pg_current_snapshot() AS snapshot) AS now"
)
SYSTEM = "SELECT CAST(system_identifier AS text) AS system FROM pg_control_system()"


@dataclass(frozen=True)
class HorizonPosition:
    """How far a table was read.

    Args:
        system: the identifier of the server's data; None: the user may not know it.
        database, relation: oids.
        timeline: that of the server's log, which another server continues under another; None: a standby.
        horizon: transactions before it had ended.
        next: the first number that no transaction had then.
        exact: whether the rows of transactions before the horizon were read and no others.
    """

    system: str | None
    database: int
    relation: int
    timeline: str | None
    horizon: int
    next: int
    exact: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return dict(vars(self))

    @classmethod
    def read(cls, stored: Position | None) -> HorizonPosition | None:
        """Read what `to_json` wrote; None: nothing, or another kind of position, as that of a cursor or of a log."""
        return cls(**stored) if stored is not None and stored.keys() == cls.__annotations__.keys() else None

    def leads_to(self, now: HorizonPosition) -> bool:
        """Say whether `now` is a later moment of the same table, so that numbers of transactions mean the same."""
        same = (self.database, self.relation) == (now.database, now.relation)
        told = all(
            before is None or after is None or before == after
            for before, after in ((self.system, now.system), (self.timeline, now.timeline))
        )
        return same and told and self.horizon <= now.horizon and self.next <= now.next


def rows_of(window: ReadWindow, now: HorizonPosition | None) -> sql.Composable:
    """Return the condition of the rows of a window.

    Raises:
        UsageError: what changed in it can't be told, or rows that come once can't be promised.
        SourceError: the position is that of another table or server.
    """
    if window.what == FULL:
        return sql.SQL("true")
    if now is None:
        raise UsageError(
            f"{window.table.full_name} does not tell which rows changed: it is no table that keeps rows itself",
            safe="nothing was written",
            next_step="sync it with --mode full, or name a column whose values grow: --cursor COLUMN --lag '1 hour'",
            table=window.table.full_name,
        )
    after = HorizonPosition.read(window.after)
    if after is not None and not after.leads_to(now):
        raise _another(window.table)
    if window.what == CHANGED:
        if after is None or now.next - after.horizon >= XIDS:
            return sql.SQL("true")
        return _written(after.horizon, now.next)
    return _new(window, after, now)


def _new(window: ReadWindow, after: HorizonPosition | None, now: HorizonPosition) -> sql.Composable:
    assert window.what == NEW
    if not window.matched:
        _check_exact(window.table, after, now, begun=window.after is not None)
    if after is None or now.horizon - after.horizon >= XIDS:
        return sql.SQL("NOT ({})").format(_written(now.horizon, now.next))
    return _written(after.horizon, now.horizon)


def _check_exact(table: SourceTable, after: HorizonPosition | None, now: HorizonPosition, *, begun: bool) -> None:
    """Refuse to promise that rows which nothing is known by come once, where that can't be told."""
    if (after is not None and not after.exact) or (after is None and begun):
        why = "what was read before was not by append, and rows beyond its horizon may have been read already"
    elif now.next >= XIDS:
        why = "its server has run more than 2^32 transactions, so that its oldest rows can't be told from new ones"
    else:
        return
    raise UsageError(
        f"{table.full_name} has no key, and its new rows can't be appended exactly once: {why}",
        safe="nothing was written",
        next_step="name a key for a new dataset: --key COLUMN --into catalog.schema; or use --mode full",
        table=table.full_name,
    )


def _another(table: SourceTable) -> SourceError:
    return SourceRefused(
        f"{table.full_name} is not the table that was read before, or its server is another one: it was made anew, "
        "restored, or taken over by a standby. What changed since can't be told",
        safe="nothing was written",
        next_step="sync it once with --mode full; later runs go on from there",
        table=table.full_name,
    )


def _written(low: int, high: int) -> sql.Composable:
    """Return the condition of rows that transactions of `[low, high)` wrote; there are less than 2^32 of them."""
    return sql.SQL("((CAST(CAST(xmin AS text) AS bigint) - {}) & {}) < {}").format(
        sql.Literal(low % XIDS), sql.Literal(XIDS - 1), sql.Literal(high - low)
    )
