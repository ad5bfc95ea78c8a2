"""The write edge: whatever a caller hands over becomes batches of exactly the dataset's Arrow schema, or is refused.

Columns match by name, never by position; values are converted only without loss. What is refused is named by dataset,
row of the whole input, key, column and value. Arrow arrays are judged in `arrow_values`, Python values in
`python_values`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import ColumnMismatch, UsageError
from lakeward.types.arrow_values import exact
from lakeward.types.python_values import BatchTooLarge, column_of
from lakeward.types.refusal import NOTHING_WRITTEN, Origin, show
from lakeward.types.schema import Schema, name_key
from lakeward.types.table import arrow_schema

MAX_BATCH_BYTES = 256 * 1024 * 1024
"""A larger input batch is cut, so that the memory of a write depends on this and not on the caller's batches."""


def to_reader(rows: object, schema: Schema, *, dataset: str, batch_rows: int = 65_536) -> pa.RecordBatchReader:
    """Return the rows as a stream of batches of exactly `arrow_schema(schema)`.

    The stream is lazy: it reads the input batch by batch, and a bad value is raised when its batch is read. Wrong
    columns of an Arrow input are raised at once. An exception of the caller's own iterator passes unchanged.

    Args:
        rows: a `pyarrow.Table`, `RecordBatch` or `RecordBatchReader`, anything with `__arrow_c_stream__` or
            `__arrow_c_array__` (a DuckDB relation, a polars or pandas frame), or an iterable of mappings by column.
        schema: the dataset's columns.
        dataset: its name, for errors.
        batch_rows: upper limit for the rows of a batch.

    Raises:
        UsageError: `rows` is none of these.
        ColumnMismatch: columns are missing or unexpected, or a column's type has no conversion.
        ValueRefused: (while reading) a value does not fit.

    Example:
        >>> to_reader([{"id": 1}], Schema.declare({"id": "long"}), dataset="main.a.b").read_all().num_rows
        1
    """
    if batch_rows < 1:
        raise UsageError(f"batch_rows is {batch_rows}; it must be at least 1", batch_rows=batch_rows)
    source = _arrow_reader(rows, dataset)
    if source is not None:
        conform(_empty(source.schema), schema, dataset=dataset, first_row=1)
        batches = _conformed(source, schema, dataset, batch_rows)
    elif isinstance(rows, Iterable) and not isinstance(rows, Mapping | str | bytes | bytearray | memoryview):
        batches = _rows_conformed(iter(rows), schema, dataset, batch_rows)
    else:
        raise _not_rows(rows, dataset)
    return pa.RecordBatchReader.from_batches(arrow_schema(schema), batches)


def conform(batch: pa.RecordBatch, schema: Schema, *, dataset: str, first_row: int) -> pa.RecordBatch:
    """Return the batch in exactly `arrow_schema(schema)`; the same object if it is so already.

    Args:
        batch: columns in any order and in any type that converts without loss (see `arrow_values.exact`).
        schema: the dataset's columns.
        dataset: its name, for errors.
        first_row: the number of the batch's first row in the whole input, from 1, for errors.

    Raises:
        ColumnMismatch: columns are missing, unexpected or named twice, or a column's type has no conversion.
        ValueRefused: a value does not fit, or a column of the primary key has none.
    """
    names = batch.schema.names
    _check_names(names, schema, dataset, first_row)

    position = {name: index for index, name in enumerate(names)}

    def key(index: int) -> dict[str, str]:
        return {name: show(batch.column(position[name])[index]) for name in schema.primary_key}

    origin = Origin(dataset, first_row, key)
    given = [batch.column(position[name]) for name in schema.names]
    arrays = [
        exact(array, column.type, origin.column(column.name))
        for array, column in zip(given, schema.columns, strict=True)
    ]
    _refuse_null_keys(arrays, schema, origin)
    target = arrow_schema(schema)
    if all(map(_is, arrays, given)) and batch.schema.equals(target, check_metadata=True):
        return batch
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def _is(left: object, right: object) -> bool:
    return left is right


def _not_rows(rows: object, dataset: str) -> UsageError:
    return UsageError(
        f"dataset {dataset}: a {type(rows).__name__} can't be written",
        safe=NOTHING_WRITTEN,
        next_step="pass an Arrow table or reader, a DuckDB relation, a data frame or an iterable of dicts"
        + ("; pyarrow.table(…) makes a table of a dict of columns" if isinstance(rows, Mapping) else ""),
        dataset=dataset,
    )


def _arrow_reader(rows: object, dataset: str) -> pa.RecordBatchReader | None:
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if isinstance(rows, pa.Table):
        return rows.to_reader()
    if isinstance(rows, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(rows.schema, [rows])
    try:
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(rows)
        if hasattr(rows, "__arrow_c_array__"):
            batch = pa.record_batch(rows)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except pa.ArrowInvalid as error:
        # A single column is offered by the same protocol as a table. Any other error is the caller's own, for
        # instance of a relation whose query fails.
        if "non-struct type" in str(error):
            raise _not_rows(rows, dataset) from None
        raise
    return None


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _conformed(
    batches: Iterable[pa.RecordBatch], schema: Schema, dataset: str, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    row = 1
    for batch in batches:
        size = min(batch_rows, max(1, batch.num_rows * MAX_BATCH_BYTES // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, size):
            part = batch.slice(start, size) if size < batch.num_rows else batch
            yield conform(part, schema, dataset=dataset, first_row=row)
            row += part.num_rows


FIRST_ROWS = 256
GATHERED_BYTES = 32 << 20
"""About so many bytes of Python rows become one batch, or `batch_rows` of them if that is less."""


def _rows_conformed(rows: Iterator[object], schema: Schema, dataset: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
    first_row = 1
    # Few rows first: how wide they are is seen then, and wide ones must not be gathered by the ten thousand.
    take = min(FIRST_ROWS, batch_rows)
    while chunk := list(islice(rows, take)):
        size = 0
        for batch in _chunk_conformed(chunk, schema, dataset, first_row):
            size += batch.nbytes
            yield batch
        first_row += len(chunk)
        take = max(1, min(batch_rows, GATHERED_BYTES * len(chunk) // max(size, 1)))


def _chunk_conformed(rows: list[object], schema: Schema, dataset: str, first_row: int) -> Iterator[pa.RecordBatch]:
    try:
        yield _chunk_batch(rows, schema, dataset, first_row)
    except BatchTooLarge:
        middle = len(rows) // 2
        if middle == 0:
            raise Origin(dataset, first_row, lambda _: {}).refuse(0, rows[0], "is larger than 2 GiB") from None
        yield from _chunk_conformed(rows[:middle], schema, dataset, first_row)
        yield from _chunk_conformed(rows[middle:], schema, dataset, first_row + middle)


def _chunk_batch(rows: list[object], schema: Schema, dataset: str, first_row: int) -> pa.RecordBatch:
    mappings = _mappings(rows, dataset, first_row)

    def key(index: int) -> dict[str, str]:
        return {name: show(mappings[index].get(name)) for name in schema.primary_key}

    names = schema.names
    if set(map(len, mappings)) != {len(names)}:
        _check_rows(mappings, schema, dataset, first_row)
    try:
        columns = [list(map(itemgetter(name), mappings)) for name in names]
    except KeyError:
        _check_rows(mappings, schema, dataset, first_row)
        raise
    origin = Origin(dataset, first_row, key)
    arrays = [
        column_of(values, column.type, origin.column(column.name))
        for values, column in zip(columns, schema.columns, strict=True)
    ]
    _refuse_null_keys(arrays, schema, origin)
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))


def _refuse_null_keys(arrays: Sequence[pa.Array], schema: Schema, origin: Origin) -> None:
    """A null can't identify a row: it equals nothing, so each repeated write would add the row once more."""
    for name in schema.primary_key:
        array = arrays[schema.names.index(name)]
        if array.null_count:
            index = pc.index(pc.is_null(array), True).as_py()
            raise origin.refuse(index, None, "may not stand in a column of the primary key", name)


def _mappings(rows: list[object], dataset: str, first_row: int) -> Sequence[dict[str, object]]:
    if set(map(type, rows)) == {dict}:
        return rows  # type: ignore[return-value]
    result = []
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise Origin(dataset, first_row, lambda _: {}).refuse(
                index, row, f"is a {type(row).__name__}, not a mapping of column names to values"
            )
        # A copy, also because asking a defaultdict for a missing column would create it.
        result.append(dict(row))
    return result


def _check_rows(rows: Sequence[dict[str, object]], schema: Schema, dataset: str, first_row: int) -> None:
    for index, row in enumerate(rows):
        _check_names(list(row), schema, dataset, first_row + index, every_row=True)


def _check_names(names: Sequence[object], schema: Schema, dataset: str, row: int, *, every_row: bool = False) -> None:
    if set(names) == set(schema.names) and len(names) == len(schema.names):
        return
    missing = [name for name in schema.names if name not in names]
    unexpected = [str(name) for name in dict.fromkeys(names) if name not in schema.names]
    twice = [str(name) for name in dict.fromkeys(names) if names.count(name) > 1]
    nearest = {name: near for name in unexpected if (near := _nearest(name, missing or list(schema.names)))}
    parts = []
    if missing:
        parts.append("lacks " + ", ".join(map(repr, missing)))
    if unexpected:
        hints = {name: f" (did you mean {near!r}?)" for name, near in nearest.items()}
        parts.append("has unexpected " + ", ".join(f"{name!r}{hints.get(name, '')}" for name in unexpected))
    if twice:
        parts.append("has more than once " + ", ".join(map(repr, twice)))
    where = f"row {row}" if every_row else "the input" + (f" from row {row} on" if row > 1 else "")
    raise ColumnMismatch(
        f"dataset {dataset}: {where} {' and '.join(parts)}; its columns are {', '.join(schema.names)}",
        safe=NOTHING_WRITTEN,
        next_step="frame.reset_index(drop=True) drops pandas' index"
        if any(name.startswith("__index_level_") for name in unexpected)
        else None,
        dataset=dataset,
        missing=missing,
        unexpected=unexpected,
        repeated=twice,
        nearest=nearest,
        row=row,
    )


def _nearest(name: str, candidates: Sequence[str]) -> str | None:
    by_key = {name_key(candidate): candidate for candidate in candidates}
    matches = get_close_matches(name_key(name), by_key, n=1)
    return by_key[matches[0]] if matches else None
