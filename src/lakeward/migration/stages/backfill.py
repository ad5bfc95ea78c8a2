"""The stage that brings all rows to the other arm, while writers and readers go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakeward.migration.stage import Details, FlipContext, Stage
from lakeward.storage.certifying import refuse
from lakeward.storage.table import table_ref

TELL_ROWS = 10_000
"""Progress is told, and the pace kept, in steps of so many rows."""


class Backfill(Stage):
    """Brings all rows to the other arm, with their identity. Nobody waits, and nobody is served from it yet."""

    name = "backfill"
    position = 20

    def explain(self, context: FlipContext) -> list[str]:
        """See `Stage.explain`."""
        dataset, to = context.dataset, context.direction.to
        if self.done(context):
            lag = context.rooms.replication.lag(dataset, to)
            there = f"holds version {lag.holds}" if lag.waits is None else f"has a copy of version {lag.waits}"
            return [f"nothing: the {to} arm {there}, and what it has missed is brought by what changed"]
        rows = f"all {dataset.row_count:,} rows of version {dataset.head_version}"
        return [
            f"read {rows} from the {context.direction.source} arm, with row ids, positions and versions",
            f"write them to the {to} arm as that version, invisible: it counts once `verify` has compared it",
        ]

    def done(self, context: FlipContext) -> bool:
        """Say whether the other arm has a version, be it still to be compared, or there is none yet."""
        dataset = context.dataset
        return not dataset.head_version or context.rooms.replication.lag(dataset, context.direction.to).has_rows

    def run(self, context: FlipContext) -> Details:
        """See `Stage.run`."""
        rooms, dataset, to = context.rooms, context.dataset, context.direction.to
        brought = _Brought()
        result = rooms.replication.backfill(dataset, to, watched=lambda rows: paced(rows, context, brought))
        return {"version": result.version, "rows": result.row_count, "bytes": brought.bytes}

    def undo(self, context: FlipContext) -> list[str]:
        """Remove the other arm's copy, if it neither serves nor mirrors."""
        actions = self.explain_undo(context)
        if actions:
            context.rooms.replication.drain(context.dataset, context.direction.to)
        return actions

    def explain_undo(self, context: FlipContext) -> list[str]:
        """See `Stage.explain_undo`."""
        dataset, to = context.dataset, context.direction.to
        final = dataset.route.mode == context.direction.final
        if final or not context.rooms.replication.has_remains(dataset, to):
            return []
        lost = context.rooms.replication.only_on(dataset, to)
        without = f", and lose {len(lost):,} old versions that nobody else has" if lost else ""
        return [f"remove the copy of {dataset.name} from the {to} arm{without}"]


@dataclass
class _Brought:
    """What went by: bytes of rows in memory."""

    bytes: int = 0


def paced(rows: pa.RecordBatchReader, context: FlipContext, brought: _Brought | None = None) -> pa.RecordBatchReader:
    """Return the stream, judged once more and told of as it goes by, and no faster than the options say."""
    table, total = table_ref(context.dataset), context.dataset.row_count

    def batches() -> Iterator[pa.RecordBatch]:
        pace, clock = context.options.rows_per_second, context.rooms.clock
        started, passed = clock.monotonic(), 0
        for batch in rows:
            refuse(table, batch)
            if brought is not None:
                brought.bytes += batch.nbytes
            step = batch.num_rows if pace is None else min(TELL_ROWS, batch.num_rows)
            for start in range(0, batch.num_rows, max(step, 1)):
                piece = batch.slice(start, step)
                yield piece
                passed += piece.num_rows
                context.check()
                context.tell("backfill", passed, total)
                if pace is not None:
                    ahead = passed / pace - (clock.monotonic() - started)
                    if ahead > 0:
                        clock.sleep(ahead)

    return pa.RecordBatchReader.from_batches(rows.schema, batches())
