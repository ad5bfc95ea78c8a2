"""The logical types, under Iceberg's names, and their text form (`decimal(18,4)`, `list<long>`, `struct<a: int>`).

What a type means physically (Arrow, DuckDB, JSONB, digest) is decided in `table.py` and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakeward.errors import SchemaError

SIMPLE_TYPES = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "string",
    "binary",
    "uuid",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "json",
)
"""The types without parameters. `date` to `timestamptz` have microseconds and the years 1 to 9999."""

MAX_DECIMAL_PRECISION = 38
MAX_NESTING = 32


@dataclass(frozen=True)
class LogicalType:
    """Base of the logical types. `kind` is the name of the type without its parameters; `str()` is the text form."""

    kind: str

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True)
class DecimalType(LogicalType):
    """`decimal(precision,scale)`: exact, at most 38 digits, `0 <= scale <= precision`."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True)
class ListType(LogicalType):
    """`list<element>`."""

    element: LogicalType

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True)
class StructField:
    """A named field of a struct."""

    name: str
    type: LogicalType


@dataclass(frozen=True)
class StructType(LogicalType):
    """`struct<name: type, …>` with at least one field; names are unique."""

    fields: tuple[StructField, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{_quote(field.name)}: {field.type}' for field in self.fields)}>"


def decimal(precision: int, scale: int) -> DecimalType:
    """Return `decimal(precision,scale)`.

    Raises:
        SchemaError: precision is not in 1..38 or scale not in 0..precision.
    """
    if not 1 <= precision <= MAX_DECIMAL_PRECISION or not 0 <= scale <= precision:
        raise SchemaError(
            f"decimal({precision},{scale}) is out of range: precision is 1 to {MAX_DECIMAL_PRECISION}, "
            "scale is 0 to precision",
            type=f"decimal({precision},{scale})",
        )
    return DecimalType("decimal", precision, scale)


def list_of(element: LogicalType) -> ListType:
    """Return `list<element>`."""
    return ListType("list", element)


def struct_of(fields: dict[str, LogicalType]) -> StructType:
    """Return `struct<…>` of the named fields, in order."""
    return StructType("struct", tuple(StructField(name, type_) for name, type_ in fields.items()))


def simple(kind: str) -> LogicalType:
    """Return the type without parameters that is called `kind`."""
    if kind not in SIMPLE_TYPES:
        raise SchemaError(f"unknown type {kind!r}", type=kind)
    return LogicalType(kind)


_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(r'\s*(?:([A-Za-z_][A-Za-z0-9_]*)|(\d+)|"((?:[^"]|"")*)"|([<>(),:]))')


def _quote(name: str) -> str:
    return name if _BARE_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def parse_type(text: str) -> LogicalType:
    """Read a type's text form.

    Struct field names that are not plain identifiers stand in double quotes, doubled inside. The result's `str()`
    reads back as the same type.

    Raises:
        SchemaError: the text is not a type, naming the text and what was expected.

    Example:
        >>> str(parse_type("struct<a: list<decimal(18, 4)>>"))
        'struct<a: list<decimal(18,4)>>'
    """
    parser = _Parser(text)
    result = parser.type_(0)
    parser.end()
    return result


class _Parser:
    """A recursive-descent reader of one type text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def fail(self, expected: str) -> SchemaError:
        rest = self.text[self.position :].strip() or "the end"
        return SchemaError(
            f"can't read type {self.text!r}: expected {expected} at {rest!r}",
            next_step="use one of " + ", ".join(SIMPLE_TYPES) + ", decimal(p,s), list<T>, struct<name: T>",
            type=self.text,
        )

    def token(self, expected: str) -> tuple[str, str]:
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            raise self.fail(expected)
        self.position = match.end()
        word, number, quoted, mark = match.groups()
        if word is not None:
            return "word", word
        if number is not None:
            return "number", number
        if quoted is not None:
            return "quoted", quoted.replace('""', '"')
        return "mark", mark

    def expect(self, mark: str) -> None:
        start = self.position
        if self.token(repr(mark)) != ("mark", mark):
            self.position = start
            raise self.fail(repr(mark))

    def number(self) -> int:
        start = self.position
        kind, value = self.token("a number")
        if kind != "number":
            self.position = start
            raise self.fail("a number")
        return int(value)

    def type_(self, depth: int) -> LogicalType:
        if depth > MAX_NESTING:
            raise SchemaError(f"type {self.text[:60]!r}… is nested deeper than {MAX_NESTING} levels", type=self.text)
        start = self.position
        kind, word = self.token("a type")
        if kind == "word":
            if word in SIMPLE_TYPES:
                return LogicalType(word)
            if word == "decimal" and self.text[self.position :].lstrip()[:1] != "(":
                raise SchemaError(
                    f"type {self.text!r}: a decimal says how many digits it has, and how many of them behind the point",
                    next_step="write decimal(18,2), with at most 38 digits",
                    type=self.text,
                )
            if word == "decimal":
                self.expect("(")
                precision = self.number()
                self.expect(",")
                scale = self.number()
                self.expect(")")
                return decimal(precision, scale)
            if word == "list":
                self.expect("<")
                element = self.type_(depth + 1)
                self.expect(">")
                return list_of(element)
            if word == "struct":
                self.expect("<")
                return self.struct(depth)
        self.position = start
        raise self.fail("a type")

    def struct(self, depth: int) -> StructType:
        fields: dict[str, LogicalType] = {}
        while True:
            kind, name = self.token("a field name")
            if kind not in ("word", "quoted"):
                raise self.fail("a field name")
            if name in fields:
                raise SchemaError(f"type {self.text!r} has the field {name!r} twice", type=self.text)
            self.expect(":")
            fields[name] = self.type_(depth + 1)
            if self.token("',' or '>'") == ("mark", ">"):
                return struct_of(fields)

    def end(self) -> None:
        if self.text[self.position :].strip():
            raise self.fail("the end")
