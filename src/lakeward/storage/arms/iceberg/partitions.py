"""Which partition each row belongs to, and how a table is partitioned when it is made."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionField, PartitionKey, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import StructType, UUIDType

from lakeward.errors import DataError
from lakeward.storage.arms.iceberg.transforms import KNOWN, transformed
from lakeward.types.partitioning import parse_partition_field
from lakeward.types.schema import Schema as DatasetSchema
from lakeward.types.schema import name_key

_FIRST_FIELD_ID = 1000
_TRANSFORMS: dict[str, Any] = {
    "identity": IdentityTransform,
    "bucket": BucketTransform,
    "truncate": TruncateTransform,
    "year": YearTransform,
    "month": MonthTransform,
    "day": DayTransform,
    "hour": HourTransform,
}
_ENDINGS = {"truncate": "trunc"}

MAX_NAME_BYTES = 200
"""A directory whose name would be longer gets the hash of it: file systems have a limit of 255."""


def partition_spec(declared: Sequence[str], columns: DatasetSchema, taken: Sequence[str]) -> PartitionSpec:
    """Return how a new table is partitioned.

    Args:
        declared: what `declare_partitions` returned.
        columns: of the dataset; their field ids are those of the table.
        taken: names of all the table's columns, which a partition field can't have unless it is the column.
    """
    used = {name_key(name) for name in taken}
    fields: list[PartitionField] = []
    for field_id, text in enumerate(declared, start=_FIRST_FIELD_ID):
        field = parse_partition_field(text)
        name = field.column
        if field.transform != "identity":
            number = f"_{field.number}" if field.number is not None else ""
            name = f"{field.column}_{_ENDINGS.get(field.transform, field.transform)}{number}"
            while name_key(name) in used:
                name += "_"
        used.add(name_key(name))
        make = _TRANSFORMS[field.transform]
        transform: Transform[Any, Any] = make() if field.number is None else make(field.number)
        source = columns.column(field.column).field_id
        fields.append(PartitionField(source_id=source, field_id=field_id, transform=transform, name=name))
    return PartitionSpec(*fields)


def newest_spec(table: Table, schema: Schema) -> PartitionSpec | None:
    """Return how a table can be partitioned under the columns of a schema: as it is, or as it was last.

    None: every spec that it ever had is by columns that the schema does not have.
    """
    specs = sorted(table.metadata.partition_specs, key=lambda spec: -spec.spec_id)
    for spec in (table.spec(), *specs):
        sources = [field.source_id for field in spec.fields if not isinstance(field.transform, VoidTransform)]
        if all(_find(schema.as_struct(), source) is not None for source in sources):
            return spec
    return None


@dataclass(frozen=True)
class Partition:
    """One value of a table's partition spec.

    Args:
        key: equal for equal values, not-a-number included.
        values: as a manifest has them.
    """

    key: tuple[Any, ...]
    values: tuple[Any, ...]

    @property
    def record(self) -> Record:
        """The value as PyIceberg has it."""
        return Record(*self.values)


UNPARTITIONED = Partition((), ())


class _Place(PartitionKey):
    """What a location provider asks for the directory of a partition."""

    def __init__(self, spec: PartitionSpec, schema: Schema, partition: Partition) -> None:
        super().__init__([], spec, schema)
        object.__setattr__(self, "_record", partition.record)

    def to_path(self) -> str:
        path: str = self.partition_spec.partition_to_path(self.__dict__["_record"], self.schema)
        return "/".join(_short(part) for part in path.split("/"))


def _short(name: str) -> str:
    if len(name) <= MAX_NAME_BYTES:
        return name
    return f"{name[: MAX_NAME_BYTES - 33].rstrip('%')}-{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()}"


class Partitions:
    """The partitions that a table's rows are written to: those of its default spec at this moment.

    Raises:
        DataError: the table is partitioned by what Lakeward does not know.
    """

    def __init__(self, table: Table, what: str) -> None:
        self._schema = table.schema()
        self._what = what
        self.spec = table.spec()
        self.is_none = self.spec.is_unpartitioned()
        self._paths = [self._path(field) for field in self.spec.fields]

    def place(self, partition: Partition) -> PartitionKey | None:
        """Return what names a partition's directory to a location provider."""
        return None if self.is_none else _Place(self.spec, self._schema, partition)

    def of(self, rows: pa.Table) -> tuple[np.ndarray, list[Partition]]:
        """Return each row's partition, as a position in the list of those that occur.

        Args:
            rows: columns in the order of the table's schema, in one chunk each.

        Raises:
            DataError: a value has no partition.
        """
        codes = np.zeros(rows.num_rows, np.int64)
        distinct: list[tuple[Any, ...]] = [()]
        for field, path in zip(self.spec.fields, self._paths, strict=True):
            values = transformed_column(rows, field, path, self._what)
            encoded = values.dictionary_encode(null_encoding="encode")
            found = self._as_read(field, encoded.dictionary.to_pylist())
            codes = codes * len(found) + encoded.indices.to_numpy(zero_copy_only=False)
            if len(distinct) > 1:
                # Only the pairs that occur, so that the numbers stay as small as the number of partitions.
                pairs = pa.array(codes).dictionary_encode()
                codes = pairs.indices.to_numpy()
                occurring = [divmod(pair, len(found)) for pair in pairs.dictionary.to_pylist()]
                distinct = [(*distinct[before], found[at]) for before, at in occurring]
            else:
                distinct = [(*distinct[0], value) for value in found]
        return codes, [Partition(tuple(map(_key, values)), values) for values in distinct]

    def _as_read(self, field: PartitionField, values: list[Any]) -> list[Any]:
        """Return values as PyIceberg reads them from manifests: it compares the two where it writes the next one."""
        if isinstance(field.transform, IdentityTransform) and isinstance(
            self._schema.find_field(field.source_id).field_type, UUIDType
        ):
            return [uuid.UUID(bytes=value) if value is not None else None for value in values]
        return values

    def _path(self, field: PartitionField) -> tuple[int, ...]:
        """Return where the source of a field is: the position of a column, then of fields in structs."""
        if not isinstance(field.transform, KNOWN):
            raise self._unknown(field)
        found = _find(self._schema.as_struct(), field.source_id)
        if found is None and not isinstance(field.transform, VoidTransform):
            raise self._unknown(field)
        return found or ()

    def _unknown(self, field: PartitionField) -> DataError:
        return DataError(
            f"{self._what}: its Iceberg table is partitioned by {field.name!r}, {field.transform} of field id "
            f"{field.source_id}, which can't be computed",
            safe="nothing was written",
            next_step="let the engine that partitions it so take that field out of the table's partition spec",
        )


def transformed_column(rows: pa.Table, field: PartitionField, path: tuple[int, ...], what: str) -> pa.Array:
    """Return the partition value of each row by one field of a spec."""
    if not path:
        return pa.nulls(rows.num_rows, pa.int32())
    column = rows.column(path[0]).combine_chunks()
    if len(path) > 1:
        column = pc.struct_field(column, list(path[1:]))
    try:
        return transformed(field.transform, column)
    except ValueError as error:
        raise DataError(
            f"{what}: a value of {rows.column_names[path[0]]!r} has no partition by {field.name!r}: {error}",
            safe="nothing was written",
            next_step="write the rows without it",
        ) from error


def _find(struct: StructType, field_id: int) -> tuple[int, ...] | None:
    for position, field in enumerate(struct.fields):
        if field.field_id == field_id:
            return (position,)
        if isinstance(field.field_type, StructType):
            below = _find(field.field_type, field_id)
            if below is not None:
                return (position, *below)
    return None


def _key(value: Any) -> Any:
    # Not-a-number does not equal itself.
    return value.hex() if isinstance(value, float) else value
