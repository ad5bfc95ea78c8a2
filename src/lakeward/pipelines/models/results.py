"""What a model gave for a batch → one array for each output, by position; or a refusal that says what it gave instead.

A label is no position: what a data frame's index says is ignored. Nothing is cut, repeated or shifted to fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import ColumnMismatch, ValueRefused
from lakeward.pipelines.models.registered import SOURCE_ROW_INDEX, ModelOutput
from lakeward.types.arrow_values import exact
from lakeward.types.logical import LogicalType
from lakeward.types.python_values import column_of
from lakeward.types.refusal import Origin

_DIRECT_KINDS = "biufMm"
"""The NumPy kinds whose arrays Arrow takes as they are: booleans, numbers, instants. Others go value by value."""


class WrongResult(Exception):
    """What a model gave is not one value for each row. The text says what it is, beginning with a verb."""


def by_output(
    result: object, outputs: Sequence[tuple[ModelOutput, LogicalType]], given: Sequence[str], index: pa.Array
) -> list[pa.Array]:
    """Return the columns of the outputs, one value for each row of a batch, in the order of its rows.

    Args:
        result: what the model gave: a column, if it has one output; else a mapping of columns by output, which may say
            in `__source_row_index__` which row each value belongs to.
        outputs: those that are wanted, with the types of their columns.
        given: the names of all outputs that the model has.
        index: the numbers of the batch's rows in the whole input.

    Raises:
        WrongResult: it is anything else.
    """
    columns = _columns(result, given)
    order = columns.pop(SOURCE_ROW_INDEX, None)
    _check_names(columns, given)
    arrays = [_array(columns[output.name], type_, output.name, len(index)) for output, type_ in outputs]
    if order is None:
        return arrays
    told = _array(order, LogicalType("long"), SOURCE_ROW_INDEX, len(index))
    places = pc.index_in(index, told)
    # As many as there are rows, and each row among them: so each is there once.
    if places.null_count:
        raise WrongResult(f"gave in {SOURCE_ROW_INDEX!r} other rows than it got, or one of them twice")
    return [array.take(places) for array in arrays]


def _columns(result: object, given: Sequence[str]) -> dict[str, object]:
    if isinstance(result, pa.Table | pa.RecordBatch):
        return {name: result.column(position) for position, name in enumerate(result.schema.names)}
    if isinstance(result, Mapping):
        return dict(result)
    if len(given) == 1:
        return {given[0]: result}
    raise WrongResult(f"gave {_kind(result)}, and a mapping of {', '.join(given)} is needed")


def _check_names(columns: Mapping[str, object], given: Sequence[str]) -> None:
    missing = [name for name in given if name not in columns]
    unexpected = [str(name) for name in columns if name not in given]
    if missing or unexpected:
        raise WrongResult(
            f"gave the columns {', '.join(map(str, columns)) or '(none)'}, and {', '.join(given)} are needed"
        )


def _array(values: object, type_: LogicalType, name: str, rows: int) -> pa.Array:
    found = _one_dimension(values, name, rows)
    place = Origin("", 1, lambda _: {}).column(name)
    try:
        if isinstance(found, pa.Array):
            return exact(found, type_, place)
        return column_of(found, type_, place)
    except ValueRefused as error:
        row = error.fields["row"]
        raise WrongResult(
            f"gave for output {name!r}, in row {row} of the batch, the value {error.fields['value']}, which "
            f"{error.fields['reason']} (the column is {type_})"
        ) from None
    except ColumnMismatch as error:
        raise WrongResult(f"gave {error.fields['source_type']} for output {name!r}, which is {type_}") from None


def _one_dimension(values: object, name: str, rows: int) -> pa.Array | Sequence[object]:
    """Return the values as an Arrow array or a list, exactly one for each row."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        found: Any = values
    elif isinstance(values, np.ma.MaskedArray):
        found = _flat(values, name).tolist()
    elif hasattr(values, "__array__"):
        array = _flat(np.asarray(values), name)
        found = pa.array(array) if array.dtype.kind in _DIRECT_KINDS and array.dtype.isnative else array.tolist()
    elif isinstance(values, list | tuple):
        found = values
    else:
        raise WrongResult(f"gave {_kind(values)} for output {name!r}, and a column of {rows} values is needed")
    if len(found) != rows:
        raise WrongResult(f"gave {len(found)} values for output {name!r}, and {rows} rows were given")
    return found


def _flat(array: Any, name: str) -> Any:
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        shape = "one value" if array.ndim == 0 else f"an array of the shape {array.shape}"
        raise WrongResult(f"gave {shape} for output {name!r}, and one value for each row is needed")
    return array


def _kind(value: object) -> str:
    return "nothing (None)" if value is None else f"a {type(value).__name__}"
