"""Puts the columns of a dataset into those of its table, which may have others, in another order: by field id."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import types as iceberg
from pyiceberg.io.pyarrow import compute_statistics_plan, parquet_path_to_id_mapping, schema_to_pyarrow
from pyiceberg.schema import Schema as IcebergSchema

from lakeward.errors import ColumnMismatch, DataError
from lakeward.storage.arms.iceberg.file_names import file_schema
from lakeward.types.arrow_values import flattened
from lakeward.types.logical import DecimalType, ListType, LogicalType, StructType
from lakeward.types.schema import IDENTITY_COLUMNS, Schema

_KINDS: dict[str, type[iceberg.IcebergType]] = {
    "boolean": iceberg.BooleanType,
    "int": iceberg.IntegerType,
    "long": iceberg.LongType,
    "float": iceberg.FloatType,
    "double": iceberg.DoubleType,
    "string": iceberg.StringType,
    "binary": iceberg.BinaryType,
    "uuid": iceberg.UUIDType,
    "date": iceberg.DateType,
    "time": iceberg.TimeType,
    "timestamp": iceberg.TimestampType,
    "timestamptz": iceberg.TimestamptzType,
    "json": iceberg.StringType,
}
_PROMOTED: dict[str, type[iceberg.IcebergType]] = {"int": iceberg.LongType, "float": iceberg.DoubleType}
"""What a table's column may have become, of which a dataset's value is a value still."""


class TableColumns:
    """The columns of a table as its data files have them, and where each comes from.

    Args:
        table: the table's schema.
        columns: the dataset's.
        what: names the dataset in errors.
        properties: of the table, which say what statistics of which column are kept.

    Raises:
        ColumnMismatch: the table lacks a column, or has it in a type that can't take its values, or requires one that
            the dataset does not have.
    """

    def __init__(self, table: IcebergSchema, columns: Schema, what: str, properties: Mapping[str, str]) -> None:
        self.files = file_schema(table)
        self.arrow = schema_to_pyarrow(self.files, include_field_ids=True)
        self.statistics = compute_statistics_plan(self.files, dict(properties))
        self.paths = parquet_path_to_id_mapping(self.files)
        self._sources = _sources(table, columns, what)
        self._names = [field.name for field in table.fields]
        self._what = what
        self._width = len(columns.columns) + len(IDENTITY_COLUMNS)

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows in the table's columns.

        Args:
            batch: the business columns in the dataset's order, then the identity columns.
        """
        assert batch.num_columns == self._width, f"{batch.num_columns} columns and not {self._width}"
        columns = [
            pa.nulls(batch.num_rows, field.type) if source is None else as_type(batch.column(source), field.type)
            for source, field in zip(self._sources, self.arrow, strict=True)
        ]
        for column, name, field in zip(columns, self._names, self.arrow, strict=True):
            if not field.nullable and column.null_count:
                raise DataError(
                    f"{self._what}: its Iceberg table requires column {name!r}, which is null in {column.null_count:,} "
                    "rows",
                    safe="nothing was written",
                    next_step="fill it, or let the engine that made the table make the column optional",
                    column=name,
                )
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow)


def _sources(table: IcebergSchema, columns: Schema, what: str) -> list[int | None]:
    """Return for each column of the table its position in a batch; None: the dataset does not have it."""
    known = {field.field_id: field for field in table.fields}
    for column in columns.columns:
        field = known.get(column.field_id)
        if field is None:
            raise _mismatch(what, f"its Iceberg table has no column of field id {column.field_id}, {column.name!r}")
        if not _takes(field.field_type, column.type):
            raise _mismatch(
                what, f"column {column.name!r} is a {column.type}, and a {field.field_type} in its Iceberg table"
            )
    positions = {column.field_id: position for position, column in enumerate(columns.columns)}
    for position, name in enumerate(IDENTITY_COLUMNS, start=len(columns.columns)):
        identity = next((field for field in table.fields if field.name == name), None)
        if identity is None:
            raise _mismatch(what, f"its Iceberg table has no column {name}")
        positions[identity.field_id] = position
    for field in table.fields:
        if field.required and field.field_id not in positions:
            raise _mismatch(what, f"its Iceberg table requires a column {field.name!r} that the dataset does not have")
    return [positions.get(field.field_id) for field in table.fields]


def _takes(physical: iceberg.IcebergType, type_: LogicalType) -> bool:
    """Say whether a column of the table takes every value of a type. Fields of structs go by position."""
    if isinstance(type_, StructType):
        if not isinstance(physical, iceberg.StructType) or len(physical.fields) != len(type_.fields):
            return False
        pairs = zip(physical.fields, type_.fields, strict=True)
        return all(_takes(there.field_type, field.type) for there, field in pairs)
    if isinstance(type_, ListType):
        return isinstance(physical, iceberg.ListType) and _takes(physical.element_type, type_.element)
    if isinstance(type_, DecimalType):
        return (
            isinstance(physical, iceberg.DecimalType)
            and physical.scale == type_.scale
            and physical.precision >= type_.precision
        )
    return isinstance(physical, (_KINDS[type_.kind], _PROMOTED.get(type_.kind, _KINDS[type_.kind])))


def _mismatch(what: str, why: str) -> ColumnMismatch:
    return ColumnMismatch(
        f"{what}: {why}",
        safe="nothing was written",
        next_step="give the table back the columns of the dataset: `lakeward ledger restore` does that for a dataset",
    )


def as_type(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the array in a type that may differ from its own in names, nullability and widths only.

    Structs go by position: Arrow's cast goes by name, and makes nulls of a field that it doesn't find.
    """
    if column.type == wanted:
        return column
    if isinstance(column, pa.ExtensionArray) and not isinstance(wanted, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_struct(wanted):
        fields = [as_type(column.field(index), field.type) for index, field in enumerate(wanted)]
        return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=column.is_null())
    if pa.types.is_list(wanted) or pa.types.is_large_list(wanted):
        kind, offset = (pa.ListArray, pa.int32()) if pa.types.is_list(wanted) else (pa.LargeListArray, pa.int64())
        # Flattening leaves out what lies under a null, so the offsets are counted anew.
        ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(column), 0).cast(offset))
        offsets = pa.concat_arrays([pa.array([0], offset), ends])
        values = as_type(flattened(column), wanted.value_type)
        return kind.from_arrays(offsets, values, type=wanted, mask=column.is_null())
    return column if column.type == wanted else column.cast(wanted)
