"""Ledger rows as a table: for one dataset's history, and for the ledger of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from lakeward.cli.text import table
from lakeward.control.transaction_kinds import VERSIONLESS_KINDS

if TYPE_CHECKING:
    from lakeward.control.records import Transaction


def history_table(transactions: Sequence[Transaction], *, dataset: bool) -> Table:
    """Return one line per transaction; with the dataset's name if asked for."""
    rows = []
    for each in transactions:
        when = (each.committed_at or each.opened_at).isoformat(sep=" ", timespec="seconds")
        counts = "–" if each.row_count is None else f"{each.row_count:,}"
        done = [
            "–" if count is None else f"{count:,}" for count in (each.rows_added, each.rows_updated, each.rows_deleted)
        ]
        by = each.pipeline or each.writer
        by = f"{by} ({each.author})" if each.author else by
        ended = each.status == "committed" and not each.readable and each.kind not in VERSIONLESS_KINDS
        row = [
            each.version,
            "not readable" if ended else each.status,
            each.verb,
            each.arm,
            *done,
            counts,
            by,
            when,
            each.error or "",
        ]
        rows.append([each.dataset, *row] if dataset else row)
    columns = ["version", "status", "mode", "arm", "added", "updated", "deleted", "rows", "by", "when", "error"]
    return table(
        ["dataset", *columns] if dataset else columns, rows, ("version", "added", "updated", "deleted", "rows")
    )
