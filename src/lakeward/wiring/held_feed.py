"""Looks once more at a dataset that is held: whether what feeds it, and up to where, is what its writer believes."""

from __future__ import annotations

from collections.abc import Callable

from lakeward.control.records import OpenTransaction
from lakeward.control.sources import Feed, SourceTables, log_position
from lakeward.control.tree import DatasetRecord
from lakeward.errors import ConflictError
from lakeward.sources.connector import Position
from lakeward.wiring.follow_plan import TableFollow
from lakeward.wiring.sync_plan import check_fed


class HeldFeed:
    """Keeps a process that was stopped, and wakes up, from writing what another one has written meanwhile.

    Args:
        tables: what feeds each dataset.
        exact: a dataset has to be what its table is, so that nobody else may have changed rows of it.
    """

    def __init__(self, tables: SourceTables, exact: bool) -> None:
        self._tables = tables
        self._exact = exact

    def check(
        self, follow: TableFollow, record: DatasetRecord, after: Position | None
    ) -> Callable[[OpenTransaction], None]:
        """Return what raises ConflictError unless the dataset has the log up to `after`; None: it has none of it.

        It does so, too, where another writer has changed rows since.
        """
        source, relation = follow.plan.source, follow.table.full_name

        def opened(transaction: OpenTransaction) -> None:
            feed = self._tables.feed(record.id)
            check_fed(record.name, transaction.parent_version, feed, source, relation)
            there = log_position(feed.position) if feed is not None else None
            if there != after:
                raise ConflictError(
                    f"dataset {record.name} was written meanwhile: it has the log of {source} up to another position",
                    safe=f"the dataset is unchanged at version {transaction.parent_version}",
                    next_step=f"lakeward source follow {source}",
                    dataset=record.name,
                )
            if self._exact and feed is not None and after is not None:
                self._check_unwritten(transaction, feed)

        return opened

    def _check_unwritten(self, transaction: OpenTransaction, feed: Feed) -> None:
        if transaction.parent_version == feed.version:
            return
        written = self._tables.written_since(transaction.dataset_id, feed.version)
        if written is not None:
            version, writer = written
            again = f"{feed.source} --table {feed.relation}"
            raise ConflictError(
                f"dataset {transaction.dataset} was written by {writer} at version {version}, and is not what "
                f"{feed.relation} of source {feed.source} was any more",
                safe=f"the dataset is unchanged at version {transaction.parent_version}",
                next_step=f"lakeward source unfollow {again}, then lakeward source follow {again}: makes it equal",
                dataset=transaction.dataset,
            )
