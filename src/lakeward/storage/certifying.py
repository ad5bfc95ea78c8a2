"""Judges each value of a version before it goes to another arm: one pass, batch by batch.

The judges are those of the write itself: the write edge (`arrow_values.exact`), which lets in what every arm keeps, and
the other arm's own code for rows that are large. Rows that another engine wrote, and that were adopted, have not been
through the write edge.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import LakewardError, StorageError, ValueRefused
from lakeward.storage.arm import Scan
from lakeward.storage.certificate import EXAMPLES, Certificate, ColumnCertificate, Example
from lakeward.storage.finding import without
from lakeward.storage.pairing import key_text
from lakeward.storage.receiving import Receiver
from lakeward.storage.routing import Place
from lakeward.storage.table import TableRef
from lakeward.storage.unreadable import unreadable
from lakeward.types.arrow_values import exact
from lakeward.types.logical import ListType, LogicalType, StructType
from lakeward.types.refusal import Origin, show
from lakeward.types.schema import FLOAT_KINDS, ROW_ID, Column

LARGE_ROW_BYTES = 8 << 20
"""Rows from this size on are rehearsed one by one: what an engine can hold of one value depends on its memory."""

_ORDERED = ("int", "long", "float", "double", "decimal", "date", "time", "timestamp", "timestamptz")
_BITS = {"float": (pa.uint32(), 0x7FC00000), "double": (pa.uint64(), 0x7FF8000000000000)}
"""The bits of the only NaN that JSON's text of it reads back as."""
_OTHER_BITS = "becomes the usual NaN, which has other bits"


def certify(
    table: TableRef,
    place: Place,
    receiver: Receiver,
    *,
    here: Mapping[str, str],
    there: Mapping[str, str],
    json_too: bool,
    last: int,
    seen: Callable[[pa.RecordBatch], None] = lambda _batch: None,
) -> Certificate:
    """Read a version once, and judge every value of it.

    Args:
        table: the dataset.
        place: the arm that has the version, and how.
        receiver: of the other arm.
        here, there: in what types the arms keep the columns.
        json_too: JSON may be in another form than the canonical one, into which the write edge brings it.
        last: the position that the next row would get.
        seen: is given each batch that was read.
    """
    columns = {
        column.name: ColumnCertificate(column.name, str(column.type), here[column.name], there[column.name])
        for column in table.schema.columns
    }
    rows, size, readable = 0, 0, table
    while True:
        try:
            scan = Scan(readable.schema.names, identity=True)
            for batch in place.arm.scan(readable, place.version, scan):
                rows, size = rows + batch.num_rows, size + batch.nbytes
                seen(batch)
                _judge(readable, batch, columns, receiver, json_too=json_too)
            return Certificate(place.version.version, rows, size, tuple(columns.values()))
        except StorageError as error:
            name = error.fields.get("column")
            if name not in readable.schema.names:
                raise
        # The other columns are judged from the start, without the one that can't be read.
        bad = unreadable(place, readable, str(name), (0, max(last, 1)))
        shown = (bad.values or {}).get(place.arm.name) or "?"
        readable, rows, size = without(readable, [str(name)]), 0, 0
        for column in readable.schema.columns:
            fresh = ColumnCertificate(column.name, str(column.type), here[column.name], there[column.name])
            columns[column.name] = fresh
        columns[str(name)].against("refused", Example(bad.key, shown, f"can't be read as {columns[str(name)].type}"))


def refuse(table: TableRef, batch: pa.RecordBatch) -> None:
    """Raise if a value of a batch on its way to another arm is none that every arm keeps.

    JSON that is not canonical is left to the digests, which it changes.

    Raises:
        ValueRefused: with the row's key, the column and the value.
    """
    origin = Origin(table.name, 1, lambda index: {**_key(table, batch, index)})
    for column in table.schema.columns:
        if not _has_json(column.type):
            exact(batch[column.name], column.type, origin.column(column.name))


def _judge(
    table: TableRef,
    batch: pa.RecordBatch,
    columns: Mapping[str, ColumnCertificate],
    receiver: Receiver,
    *,
    json_too: bool,
) -> None:
    for column in table.schema.columns:
        told = columns[column.name]
        if told.closed:
            continue
        array = batch[column.name]
        _look(told, array, column.type)
        refusals = _refusals(table, array, column, json_too=json_too)
        _note(told, "refused", (Example(_key(table, batch, index), *why) for index, *why in refusals))
        if column.type.kind in FLOAT_KINDS and told.there.startswith("jsonb"):
            nans = _other_nans(array, column.type.kind)
            _note(told, "lossy", (Example(_key(table, batch, index), "NaN", _OTHER_BITS) for index in nans))
    for row in _large(batch):
        _rehearse(table, row, columns, receiver)


def _note(told: ColumnCertificate, verdict: str, examples: Iterator[Example]) -> None:
    """Note examples, until there are enough."""
    for example in itertools.islice(examples, EXAMPLES - len(told.examples)):
        told.against(verdict, example)


def _look(told: ColumnCertificate, array: pa.Array, type_: LogicalType) -> None:
    bounds, longest = None, None
    if type_.kind in _ORDERED:
        found = pc.min_max(array)
        bounds = (found["min"], found["max"]) if found["min"].is_valid else None
    elif type_.kind in ("string", "json", "binary", "list"):
        lengths = pc.list_value_length(array) if type_.kind == "list" else pc.binary_length(array)
        longest = pc.max(lengths).as_py()
    told.saw(len(array), array.null_count, bounds, longest)


def _refusals(table: TableRef, array: pa.Array, column: Column, *, json_too: bool) -> Iterator[tuple[int, str, str]]:
    """Yield index, value and reason of each value that the write edge would refuse, or change."""
    if _has_json(column.type) and not json_too:
        return
    start = 0
    while start < len(array):
        rest = array.slice(start)
        try:
            kept = exact(rest, column.type, Origin(table.name, 1, lambda _: {}).column(column.name))
        except ValueRefused as error:
            row = error.fields["row"]
            assert isinstance(row, int)
            yield start + row - 1, str(error.fields["value"]), str(error.fields["reason"])
            start += row
            continue
        if _has_json(column.type):
            pairs = enumerate(zip(rest.to_pylist(), kept.to_pylist(), strict=True))
            changed = ((start + index, old, new) for index, (old, new) in pairs if repr(old) != repr(new))
            yield from ((index, show(old), f"would become {show(new)}") for index, old, new in changed)
        return


def _other_nans(array: pa.Array, kind: str) -> Iterator[int]:
    """Yield the places of NaNs that have other bits than the usual one. Not looked for inside lists and structs."""
    integers, usual = _BITS[kind]
    bits = pc.and_(pc.is_nan(array), pc.not_equal(array.view(integers), pa.scalar(usual, integers)))
    yield from pc.indices_nonzero(bits.fill_null(False)).to_pylist()


def _large(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the large rows of a batch, each as one of its own."""
    if batch.nbytes < LARGE_ROW_BYTES:
        return
    if batch.num_rows == 1:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _large(batch.slice(0, middle))
    yield from _large(batch.slice(middle))


def _rehearse(
    table: TableRef, row: pa.RecordBatch, columns: Mapping[str, ColumnCertificate], receiver: Receiver
) -> None:
    """Try one large row; what fails is laid to its largest column."""
    try:
        receiver.rehearse(table, row)
    except LakewardError as error:
        largest = max(table.schema.names, key=lambda name: row[name].nbytes)
        value = f"a value of {row[largest].nbytes / 1e6:,.1f} MB"
        if not columns[largest].closed:
            reason = str(error.fields.get("reason", f"can't be written: {error.message.splitlines()[0]}"))
            columns[largest].against("refused", Example(_key(table, row, 0), value, reason))


def _key(table: TableRef, batch: pa.RecordBatch, index: int) -> dict[str, str]:
    names = table.schema.primary_key or (ROW_ID,)
    return {name: key_text(batch[name][index]) for name in names}


def _has_json(type_: LogicalType) -> bool:
    if isinstance(type_, ListType):
        return _has_json(type_.element)
    if isinstance(type_, StructType):
        return any(_has_json(field.type) for field in type_.fields)
    return type_.kind == "json"
