"""The rows that benchmarks write: ten columns of the usual kinds, in batches of 65,536 rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = {
    "id": "long",
    "customer_id": "int",
    "amount": "decimal(18,4)",
    "price": "double",
    "paid": "boolean",
    "status": "string",
    "note": "string",
    "day": "date",
    "at": "timestamptz",
    "quantity": "long",
}

BATCH_ROWS = 65_536
STATUSES = ["new", "packed", "sent", "returned", "lost"]

ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("customer_id", pa.int32()),
        ("amount", pa.decimal128(18, 4)),
        ("price", pa.float64()),
        ("paid", pa.bool_()),
        ("status", pa.string()),
        ("note", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("quantity", pa.int64()),
    ]
)


def batch(start: int, rows: int, seed: int = 7) -> pa.RecordBatch:
    """Return rows `start` to `start + rows`, the same ones for the same arguments."""
    random = np.random.default_rng([seed, start])
    ids = np.arange(start, start + rows)
    codes = pa.array(random.integers(0, 10**9, rows)).cast(pa.string())
    notes = pc.binary_join_element_wise(codes, "note of order", pa.array(ids).cast(pa.string()), " ")
    null = random.random(rows) < 0.05
    return pa.RecordBatch.from_arrays(
        [
            pa.array(ids),
            pa.array(random.integers(0, 50_000, rows, dtype=np.int32)),
            _decimals(random.integers(-(10**9), 10**9, rows)),
            pa.array(random.random(rows) * 1000),
            pa.array(random.random(rows) < 0.5),
            pa.array(np.array(STATUSES)[random.integers(0, len(STATUSES), rows)]),
            pc.if_else(pa.array(null), pa.scalar(None, pa.string()), notes),
            pa.array(random.integers(18_000, 20_000, rows, dtype=np.int32)).cast(pa.date32()),
            pa.array(random.integers(1_500_000_000_000_000, 1_700_000_000_000_000, rows)).cast(
                pa.timestamp("us", "UTC")
            ),
            pa.array(random.integers(0, 10**12, rows)),
        ],
        schema=ARROW,
    )


def _decimals(unscaled: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    """Return `unscaled` ten-thousandths as decimal(18,4): 128-bit integers, the low half first."""
    halves = np.column_stack([unscaled, unscaled >> 63])
    return pa.Array.from_buffers(pa.decimal128(18, 4), len(unscaled), [None, pa.py_buffer(halves.tobytes())])


def million() -> list[pa.RecordBatch]:
    """Return one million rows."""
    return [batch(start, min(BATCH_ROWS, 1_000_000 - start)) for start in range(0, 1_000_000, BATCH_ROWS)]


def repeated(batches: list[pa.RecordBatch], times: int) -> pa.RecordBatchReader:
    """Return a stream of the same batches, `times` over: many rows that take no memory."""

    def stream() -> Iterator[pa.RecordBatch]:
        for _ in range(times):
            yield from batches

    return pa.RecordBatchReader.from_batches(ARROW, stream())
