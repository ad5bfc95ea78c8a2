"""Predicts the rows of a stream: batch by batch, each prediction beside its own row.

Every row has its number in the whole input, `__source_row_index__`. A batch goes to the model with the features of its
rows, in their order, and comes back with one value for each of them, or fails the build. A row with a null feature is
not given to a model that knows no null: its outputs are null. A batch without rows never goes to the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import ComputeError, TimeLimitExceeded, ValueRefused
from lakeward.pipelines.models.binding import BoundModel
from lakeward.pipelines.models.features import feature_of
from lakeward.pipelines.models.model_format import Model
from lakeward.pipelines.models.results import WrongResult, by_output
from lakeward.types.refusal import Origin, show
from lakeward.types.table import arrow_type

NOTHING_WRITTEN = "nothing was written"


class Prediction:
    """Predicts with one model for one node.

    Args:
        bound: the node.
        model: loaded.
        key: columns that name a row in errors; those that the input does not have are left out.
    """

    def __init__(self, bound: BoundModel, model: Model, key: Sequence[str] = ()) -> None:
        self._bound = bound
        self._model = model
        self._key = key
        self._given = [output.name for output in bound.version.signature.outputs]

    def over(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches with the outputs as columns more, with as many rows at a time as the node says.

        Raises:
            ComputeError: the model failed, or gave anything but one value for each row; with node, model, batch, row.
        """
        start = 0
        for number, batch in enumerate(rebatched(rows, self._bound.batch_rows), start=1):
            arrays = self._outputs(batch, start, number)
            names = [*batch.schema.names, *(output.name for output, _ in self._bound.outputs)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *arrays], names=names)
            start += batch.num_rows

    def schema(self, rows: pa.Schema) -> pa.Schema:
        """Return the schema of what `over` yields for rows of a schema."""
        return pa.schema([*rows, *(pa.field(output.name, arrow_type(type_)) for output, type_ in self._bound.outputs)])

    def _outputs(self, batch: pa.RecordBatch, start: int, number: int) -> list[pa.Array]:
        where = _Where(self._bound, batch, start, number, self._key)
        columns = []
        for feature, column in self._bound.features:
            if column is None:
                columns.append(pa.array(np.arange(start, start + batch.num_rows)))
                continue
            place = Origin("", 1, lambda _: {}).column(column)
            try:
                columns.append(feature_of(batch.column(column), feature.type, place))
            except ValueRefused as error:
                reason = f"column {column!r}: value {error.fields['value']} {error.fields['reason']}"
                raise where.error(f"feature {feature.name!r}, {reason}", int(str(error.fields["row"])) - 1) from None
        features = pa.RecordBatch.from_arrays(columns, names=[feature.name for feature, _ in self._bound.features])
        index = pa.array(np.arange(start, start + batch.num_rows))
        whole = None if self._model.takes_nulls else _whole(features)
        if whole is None:
            return self._predicted(features, index, where)
        if not pc.any(whole).as_py():
            return [pa.nulls(batch.num_rows, arrow_type(type_)) for _, type_ in self._bound.outputs]
        kept = index.filter(whole)
        found = self._predicted(features.filter(whole), kept, where.of(whole))
        places = pc.index_in(index, kept)
        return [array.take(places) for array in found]

    def _predicted(self, features: pa.RecordBatch, index: pa.Array, where: _Where) -> list[pa.Array]:
        try:
            result = self._model.predict(features)
        except TimeLimitExceeded as error:
            raise where.too_late(error) from error
        except Exception as error:
            self._blame(features, 0, where)
            raise where.raised(error, None) from error
        try:
            return by_output(result, self._bound.outputs, self._given, index)
        except WrongResult as error:
            raise where.error(f"the model {error}", None) from None

    def _blame(self, features: pa.RecordBatch, first: int, where: _Where) -> None:
        """Raise the error of the first row that the model raises for alone, if there is one: halve the batch."""
        rows = features.num_rows
        for start, size in ((0, rows // 2), (rows // 2, rows - rows // 2)):
            if size == 0:
                continue
            part = features.slice(start, size)
            try:
                self._model.predict(part)
            except Exception as error:
                if size > 1:
                    self._blame(part, first + start, where)
                raise where.raised(error, first + start if size == 1 else None) from error


class _Where:
    """Names a batch and its rows in errors."""

    def __init__(
        self,
        bound: BoundModel,
        batch: pa.RecordBatch,
        start: int,
        number: int,
        key: Sequence[str],
        rows: pa.Array | None = None,
    ) -> None:
        self._bound, self._batch, self._start, self._number, self._key = bound, batch, start, number, key
        self._rows = rows

    def of(self, kept: pa.Array) -> _Where:
        """Return the same for those rows of the batch that are kept."""
        rows = pc.indices_nonzero(kept)
        return _Where(self._bound, self._batch, self._start, self._number, self._key, rows)

    def raised(self, error: Exception, row: int | None) -> ComputeError:
        """Return the error for what a model raised."""
        return self.error(f"the model raised {type(error).__name__}: {str(error)[:500]}", row)

    def too_late(self, error: TimeLimitExceeded) -> TimeLimitExceeded:
        """Return the error of a model whose time is up."""
        named = self.error(error.message, None)
        late = TimeLimitExceeded(named.message, safe=named.safe, next_step=error.next_step)
        late.fields.update(error.fields, **named.fields)
        return late

    def error(self, message: str, row: int | None) -> ComputeError:
        """Return the error for a row of the batch, or for all of it."""
        bound, version = self._bound, self._bound.version
        first, last = self._start + 1, self._start + self._batch.num_rows
        key: dict[str, str] = {}
        named = ""
        if row is not None:
            row = row if self._rows is None else self._rows[row].as_py()
            names = [name for name in self._key if name in self._batch.schema.names]
            key = {name: show(self._batch.column(name)[row]) for name in names or bound.columns}
            named = f", row {first + row} ({', '.join(f'{name}={text}' for name, text in key.items())})"
        return ComputeError(
            f"node {bound.node}, model {version.reference}, batch {self._number} (rows {first} to {last}){named}: "
            f"{message}",
            safe=NOTHING_WRITTEN,
            next_step=f"mend the model and add it as a new version (lakeward model add … --name {version.name}), or "
            "leave such rows out in a transform before it",
            node=bound.node,
            model=version.reference,
            batch=self._number,
            row=None if row is None else first + row,
            key=key,
        )


def _whole(features: pa.RecordBatch) -> pa.Array | None:
    """Return which rows have no null; None if all of them."""
    whole = None
    for column in features.columns:
        if column.null_count:
            valid = column.is_valid()
            whole = valid if whole is None else pc.and_(whole, valid)
    return whole


def rebatched(rows: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows with `size` at a time, the last ones with less, and none for no rows.

    So what a model is called with does not depend on how the rows came.
    """
    parts: list[pa.RecordBatch] = []
    gathered = 0
    for batch in rows:
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, size - gathered)
            start += part.num_rows
            gathered += part.num_rows
            parts.append(part)
            if gathered == size:
                yield _joined(parts)
                parts, gathered = [], 0
    if gathered:
        yield _joined(parts)


def _joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    return pa.concat_batches(parts)
