"""How a dataset's rows are divided into partitions: `day(ts)`, `bucket(16, id)`, or a column by itself.

The transforms are those of the Iceberg table spec, "Partition Transforms". What a declaration may say is decided here;
how a value is transformed, in the Iceberg arm, the only one that has partitions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lakeward.errors import SchemaError
from lakeward.types.schema import Schema, name_key

_TIMES = ("timestamp", "timestamptz")
_TEXTS = ("string", "binary")
_NUMBERS = ("int", "long", "decimal")

TRANSFORMS: dict[str, tuple[str, ...]] = {
    "identity": ("boolean", *_NUMBERS, *_TEXTS, "uuid", "date", "time", *_TIMES),
    "bucket": (*_NUMBERS, *_TEXTS, "uuid", "date", "time", *_TIMES),
    "truncate": (*_NUMBERS, *_TEXTS),
    "year": ("date", *_TIMES),
    "month": ("date", *_TIMES),
    "day": ("date", *_TIMES),
    "hour": _TIMES,
}
"""The transforms, and the kinds of columns that each takes. Floats are in none: equality of theirs is not exact."""

WITH_NUMBER = ("bucket", "truncate")
"""The transforms that take a number: how many buckets, how many characters or what step."""

_LARGEST_NUMBER = 2**31 - 1
_OF_TIME = ("year", "month", "day", "hour")

_CALL = re.compile(r"\s*(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?(.*?)\s*\)\s*", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"]|"")+)"', re.DOTALL)
_BARE = re.compile(r"\w+")


@dataclass(frozen=True)
class PartitionField:
    """One thing that rows are divided by. `str()` is its text form.

    Args:
        column: the source column.
        transform: one of `TRANSFORMS`.
        number: that of `bucket` and `truncate`.
    """

    column: str
    transform: str = "identity"
    number: int | None = None

    def __str__(self) -> str:
        name = self.column if _BARE.fullmatch(self.column) else '"' + self.column.replace('"', '""') + '"'
        if self.transform == "identity":
            return name
        return f"{self.transform}({name})" if self.number is None else f"{self.transform}({self.number}, {name})"


def parse_partition_field(text: str) -> PartitionField:
    """Read a text form. A column's name that has other characters than letters and digits stands in double quotes.

    Raises:
        SchemaError: the text is none, with what is wrong.

    Example:
        >>> parse_partition_field("bucket(16, id)")
        PartitionField(column='id', transform='bucket', number=16)
    """
    call = _CALL.fullmatch(text)
    if call is None:
        return PartitionField(_column(text.strip(), text))
    transform, number, column = call[1].casefold(), call[2], _column(call[3], text)
    if transform not in TRANSFORMS:
        raise _unreadable(text, f"{call[1]!r} is no transform; there are {', '.join(TRANSFORMS)}")
    if (number is not None) != (transform in WITH_NUMBER):
        raise _unreadable(text, f"{transform} takes {'a number and ' if number is None else ''}a column")
    if number is not None and not 1 <= int(number) <= _LARGEST_NUMBER:
        raise _unreadable(text, f"the number of {transform} is 1 to {_LARGEST_NUMBER}")
    return PartitionField(column, transform, int(number) if number is not None else None)


def declare_partitions(texts: Sequence[str], schema: Schema, dataset: str | None = None) -> tuple[str, ...]:
    """Check a declaration, and return it in its plain form.

    Args:
        texts: such as `day(ts)`, in order.
        schema: the dataset's columns.
        dataset: its name, for the error.

    Raises:
        SchemaError: a text that can't be read, an unknown column, one whose type the transform does not take, or two
            fields of one column that say the same.

    Example:
        >>> declare_partitions(["Bucket(16,id)"], Schema.declare({"id": "long"}))
        ('bucket(16, id)',)
    """
    where = f"dataset {dataset}: " if dataset else ""
    if isinstance(texts, str):
        raise SchemaError(f"{where}partition_by is a list of texts, not one text", dataset=dataset)
    fields: list[PartitionField] = []
    for text in texts:
        try:
            field = parse_partition_field(text)
            _check(field, schema, fields)
        except SchemaError as error:
            raise SchemaError(
                f"{where}can't partition by {text!r}: {error.message}",
                next_step=error.next_step,
                dataset=dataset,
                partition=text,
            ) from None
        fields.append(field)
    return tuple(str(field) for field in fields)


def _check(field: PartitionField, schema: Schema, before: Sequence[PartitionField]) -> None:
    if field.column not in schema.names:
        near = next((name for name in schema.names if name_key(name) == name_key(field.column)), None)
        hint = f"use {near!r}" if near else None
        raise SchemaError(
            f"{field.column!r} is not a column; there are {', '.join(schema.names)}",
            next_step='write it in double quotes, as in day("my column")' if hint is None else hint,
        )
    kind = schema.column(field.column).type.kind
    if kind not in TRANSFORMS[field.transform]:
        fitting = [name for name, kinds in TRANSFORMS.items() if kind in kinds]
        raise SchemaError(
            f"column {field.column!r} is a {kind}, which {field.transform} does not take",
            next_step=f"a {kind} can be divided by {', '.join(fitting)}" if fitting else "choose another column",
        )
    for other in before:
        of_time = field.transform in _OF_TIME and other.transform in _OF_TIME
        if other.column == field.column and (of_time or other.transform == field.transform):
            raise SchemaError(
                f"{str(other)!r} divides by the same" if of_time or other == field else f"{str(other)!r} is there, too",
                next_step="keep one of them",
            )


def _column(text: str, whole: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        return quoted[1].replace('""', '"')
    if not text or any(mark in text for mark in '(),"'):
        raise _unreadable(whole, "it is neither a column nor a transform of one, as in bucket(16, id)")
    return text


def _unreadable(text: str, why: str) -> SchemaError:
    return SchemaError(why, next_step="write a column, day(column), bucket(16, column) …", partition=text)
