"""Checks what a Python node's function returned: a stream of Arrow batches of exactly the declared columns."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping

import pyarrow as pa

from lakeward.compute.engine import BATCH_ROWS
from lakeward.errors import SchemaError, ValueRefused
from lakeward.types.arrow_values import exact
from lakeward.types.logical import LogicalType
from lakeward.types.refusal import Origin
from lakeward.types.table import arrow_type, logical_type

_WANTED = "a RecordBatchReader, a Table, or batches one after the other are needed"


class WrongRows(Exception):
    """What was returned is not what was declared; the text is the end of a sentence that begins with the function."""


def batches_of(result: object) -> Generator[pa.RecordBatch]:
    """Yield the batches of what a function returned, which may be a stream of any length.

    Raises:
        WrongRows: it is no stream of batches. An exception of the stream's own passes unchanged.
    """
    if isinstance(result, pa.RecordBatch):
        yield result
    elif isinstance(result, pa.Table):
        yield from result.to_batches(BATCH_ROWS)
    elif isinstance(result, pa.RecordBatchReader):
        yield from result
    elif hasattr(result, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(result)
    elif isinstance(result, Iterable) and not isinstance(result, Mapping | str | bytes):
        for number, each in enumerate(result, start=1):
            if not isinstance(each, pa.RecordBatch | pa.Table):
                raise WrongRows(f"gave {_a(each)} as item {number}, and a RecordBatch is needed")
            yield from [each] if isinstance(each, pa.RecordBatch) else each.to_batches(BATCH_ROWS)
    else:
        raise WrongRows(f"gave {_a(result)}, and {_WANTED}")


def checked(batches: Iterable[pa.RecordBatch], columns: Mapping[str, LogicalType]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in the order and Arrow types of the declared columns, at most `BATCH_ROWS` at a time.

    Raises:
        WrongRows: a batch has other columns, or a value does not fit; told when that batch is come to.
    """
    schema = pa.schema([pa.field(name, arrow_type(type_)) for name, type_ in columns.items()])
    first = 1
    for batch in batches:
        from_row = f" from row {first} on" if first > 1 else ""
        _check_names(batch.schema, columns, from_row)
        _check_types(batch.schema, columns, from_row)
        place = Origin("", first, lambda _: {})
        try:
            arrays = [exact(batch.column(name), type_, place.column(name)) for name, type_ in columns.items()]
        except ValueRefused as error:
            facts = error.fields
            raise WrongRows(f"gave in row {facts['row']}, column {facts['column']!r}, {_reason(error)}") from None
        found = pa.RecordBatch.from_arrays(arrays, schema=schema)
        yield from (found.slice(start, BATCH_ROWS) for start in range(0, found.num_rows, BATCH_ROWS))
        first += batch.num_rows


def _reason(error: ValueRefused) -> str:
    return f"the value {error.fields['value']}, which {error.fields['reason']}"


def _check_names(given: pa.Schema, columns: Mapping[str, LogicalType], from_row: str) -> None:
    missing = [name for name in columns if name not in given.names]
    extra = [name for name in given.names if name not in columns]
    twice = sorted({name for name in given.names if given.names.count(name) > 1})
    parts = [
        f"{', '.join(map(repr, names))} {what}"
        for names, what in (
            (missing, "missing"),
            (extra, "not declared"),
            (twice, "there twice"),
        )
        if names
    ]
    if parts:
        raise WrongRows(f"gave the columns {', '.join(given.names) or '(none)'}{from_row}: {'; '.join(parts)}")


def _check_types(given: pa.Schema, columns: Mapping[str, LogicalType], from_row: str) -> None:
    for name, type_ in columns.items():
        found = given.field(name).type
        if not (pa.types.is_null(found) or found == arrow_type(type_) or _is(found, type_)):
            raise WrongRows(f"gave column {name!r} as {found}{from_row}, and {type_} ({arrow_type(type_)}) is declared")


def _is(found: pa.DataType, type_: LogicalType) -> bool:
    """Say whether an Arrow type is another form of a declared one, as large_string is of string."""
    try:
        return logical_type(found) == type_
    except SchemaError:
        return False


def _a(value: object) -> str:
    return "nothing (None)" if value is None else f"a value of the type {type(value).__name__}"
