"""A dataset's columns and key: what may be declared, and the form in which the control plane keeps it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakeward.errors import SchemaError
from lakeward.types.logical import ListType, LogicalType, StructType, parse_type

ROW_INDEX = "__row_index"
ROW_ID = "__row_id"
CREATED_AT = "__created_at"
VERSION = "__version"
IDENTITY_COLUMNS = (ROW_INDEX, ROW_ID, CREATED_AT, VERSION)
"""The columns that the arms add, hidden unless asked for. Only these four names are reserved, in any case."""

OP = "__op"
"""In the rows of a `changes` write: what to do with each, one of `OPS`. The name is not reserved."""
OPS = ("insert", "update", "delete")

MAX_COLUMN_NAME_BYTES = 255
MAX_COLUMNS = 1_600

FLOAT_KINDS = ("float", "double")
NESTED_KINDS = ("list", "struct", "json")


@dataclass(frozen=True)
class Column:
    """One column. `field_id` identifies it for ever, also after a rename; ids are never reused in a dataset."""

    name: str
    type: LogicalType
    field_id: int


@dataclass(frozen=True)
class Schema:
    """The declared columns in order, and the primary key (possibly empty)."""

    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()

    @classmethod
    def declare(
        cls,
        columns: Mapping[str, str | LogicalType],
        primary_key: Sequence[str] = (),
        dataset: str | None = None,
    ) -> Schema:
        """Check a declaration and number its columns from 1.

        Args:
            columns: type texts by column name, in order.
            primary_key: names of the key columns.
            dataset: the dataset's name, for the error.

        Raises:
            SchemaError: no columns, a name that can't be stored, two names that differ only in case or Unicode form,
                two fields of one dotted path, a reserved name, an unknown type, a key column that is unknown,
                repeated, a float or nested.

        Example:
            >>> Schema.declare({"id": "long", "note": "string"}, ["id"]).column("id").field_id
            1
        """
        where = f"dataset {dataset}: " if dataset else ""
        if not columns:
            raise SchemaError(
                f"{where}at least one column is needed",
                safe="nothing was changed",
                next_step="declare the columns: --columns id:long,note:string",
                dataset=dataset,
            )
        if len(columns) > MAX_COLUMNS:
            raise SchemaError(
                f"{where}{len(columns)} columns are more than the {MAX_COLUMNS} that fit", dataset=dataset
            )
        twins: dict[str, str] = {}
        for name in columns:
            _check_column_name(name, where, dataset)
            twin = twins.setdefault(name_key(name), name)
            if twin != name:
                raise SchemaError(
                    f"{where}columns {twin!r} and {name!r} differ only in case or Unicode form",
                    next_step="rename one of them",
                    dataset=dataset,
                    columns=[twin, name],
                )
        declared = tuple(
            Column(name, _column_type(name, type_, where, dataset), position)
            for position, (name, type_) in enumerate(columns.items(), start=1)
        )
        _check_paths(declared, where, dataset)
        schema = cls(declared, tuple(primary_key))
        schema._check_key(where, dataset)
        return schema

    @property
    def names(self) -> tuple[str, ...]:
        """The column names in declared order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Return the column called `name`.

        Raises:
            SchemaError: there is none, with the names that there are.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(f"unknown column {name!r}; there are {', '.join(self.names)}", column=name)

    def select(self, names: Sequence[str]) -> Schema:
        """Return the schema of the named columns, in the order of `names`, without a key."""
        return Schema(tuple(self.column(name) for name in names))

    def keyed(self, primary_key: Sequence[str], dataset: str | None = None) -> Schema:
        """Return the same columns with this key.

        Raises:
            SchemaError: a key column is unknown, repeated, a float or nested.
        """
        keyed = Schema(self.columns, tuple(primary_key))
        keyed._check_key(f"dataset {dataset}: " if dataset else "", dataset)
        return keyed

    def to_json(self) -> list[dict[str, Any]]:
        """Return the columns as the control plane keeps them."""
        return [{"id": column.field_id, "name": column.name, "type": str(column.type)} for column in self.columns]

    @classmethod
    def from_json(cls, columns: Sequence[Mapping[str, Any]], primary_key: Sequence[str]) -> Schema:
        """Read what `to_json` wrote."""
        return cls(
            tuple(Column(entry["name"], parse_type(entry["type"]), int(entry["id"])) for entry in columns),
            tuple(primary_key),
        )

    def _check_key(self, where: str, dataset: str | None) -> None:
        for position, name in enumerate(self.primary_key):
            if name not in self.names:
                raise SchemaError(
                    f"{where}primary key column {name!r} is not a column; there are {', '.join(self.names)}",
                    dataset=dataset,
                    column=name,
                )
            if name in self.primary_key[:position]:
                raise SchemaError(f"{where}primary key column {name!r} is named twice", dataset=dataset, column=name)
            kind = self.column(name).type.kind
            if kind in FLOAT_KINDS or kind in NESTED_KINDS:
                raise SchemaError(
                    f"{where}primary key column {name!r} is a {kind}: equality of its values is not exact",
                    next_step="declare it as long, decimal, string, date … or choose another key",
                    dataset=dataset,
                    column=name,
                )


def name_key(name: str) -> str:
    """Return what two human names must not share under one parent: Unicode-normalised and case-folded.

    Case folding can undo normalisation, so it is normalised again (Unicode 3.13, "caseless matching", D145).
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _check_column_name(name: object, where: str, dataset: str | None) -> None:
    if not isinstance(name, str) or not name.strip():
        raise SchemaError(f"{where}a column name is empty", dataset=dataset)
    if name_key(name) in IDENTITY_COLUMNS:
        raise SchemaError(
            f"{where}column {name!r} is reserved; reserved are {', '.join(IDENTITY_COLUMNS)}",
            dataset=dataset,
            column=name,
        )
    # Arrow, Parquet, JSON and SQL keep any printable text exact; a control character or half a surrogate pair would
    # pass an append and fail in some later tool.
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise SchemaError(f"{where}column {name!r} has a control character or a lone surrogate", dataset=dataset)
    size = len(name.encode())
    if size > MAX_COLUMN_NAME_BYTES:
        raise SchemaError(
            f"{where}column {name[:40]!r}… is {size} bytes long; at most {MAX_COLUMN_NAME_BYTES} fit",
            dataset=dataset,
            column=name,
        )


def _column_type(name: str, type_: str | LogicalType, where: str, dataset: str | None) -> LogicalType:
    try:
        parsed = type_ if isinstance(type_, LogicalType) else parse_type(type_)
    except SchemaError as error:
        raise SchemaError(
            f"{where}column {name!r}: {error.message}", next_step=error.next_step, dataset=dataset, column=name
        ) from error
    _check_struct_names(parsed, f"{where}column {name!r}: ", dataset)
    return parsed


def _check_struct_names(type_: LogicalType, where: str, dataset: str | None) -> None:
    if isinstance(type_, StructType):
        for field in type_.fields:
            _check_column_name(field.name, where, dataset)
            _check_struct_names(field.type, where, dataset)
        keys = [name_key(field.name) for field in type_.fields]
        if len(set(keys)) < len(keys):
            raise SchemaError(f"{where}two struct fields differ only in case or Unicode form", dataset=dataset)
    elif isinstance(type_, ListType):
        _check_struct_names(type_.element, where, dataset)


def _check_paths(columns: Sequence[Column], where: str, dataset: str | None) -> None:
    """Refuse two fields of one dotted path, as a column `a.b` beside a struct `a` of `b`: Iceberg makes them one.

    Refused on every arm, so that a dataset that is written on one can be copied to the other.
    """
    seen: set[str] = set()
    for column in columns:
        for path in _paths(column.name, column.type):
            if path in seen:
                raise SchemaError(
                    f"{where}two fields have the path {path!r}: one by a dot in its name, one inside a struct or list",
                    next_step="rename one of them",
                    dataset=dataset,
                    column=column.name,
                )
            seen.add(path)


def _paths(path: str, type_: LogicalType) -> list[str]:
    found = [path]
    if isinstance(type_, StructType):
        for field in type_.fields:
            found += _paths(f"{path}.{field.name}", field.type)
    elif isinstance(type_, ListType):
        found += _paths(f"{path}.element", type_.element)
    return found
