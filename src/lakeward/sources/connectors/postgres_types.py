"""What becomes of each type of PostgreSQL: the one table of it, which discovery, reading and docs/sources.md follow.

A value that its logical type can't hold (infinity, years BC, NaN in a decimal) is found by the server itself, row by
row, and refused by name. Any column can be read as text instead, exactly as the server prints it with the time zone
UTC, ISO dates and intervals, and as many digits as a float needs to read back the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from psycopg import sql

from lakeward.types.logical import MAX_DECIMAL_PRECISION

Composer = Callable[[sql.Composable], sql.Composable]


def _template(text: str) -> Composer:
    return lambda column: sql.SQL(text).format(column)


_PLAIN = _template("{}")


@dataclass(frozen=True)
class Rule:
    """What becomes of some types.

    Args:
        names: of the types, as `pg_type.typname` has them.
        type: the logical type's text; None: they are refused.
        about: for docs/sources.md, and for the refusal.
        read: a column → what is selected.
        bad: a column → whether a value of it is refused; None: none is.
        listed: whether arrays of it are lists of it; they are text otherwise.
    """

    names: tuple[str, ...]
    type: str | None
    about: str = ""
    read: Composer = _PLAIN
    bad: Composer | None = None
    listed: bool = False


_AS_TEXT = _template("CAST({} AS pg_catalog.text)")
_NOT_A_NUMBER = _template("{} = 'NaN'")
_OUT_OF_DAYS = "NOT ({0} >= '0001-01-01' AND {0} < '10000-01-01')"
_ONLY_DAYS = "CASE WHEN {0} >= '0001-01-01' AND {0} < '10000-01-01' THEN {0} END"
_OUT_OF_INSTANTS = "NOT ({0} >= '0001-01-01 00:00:00+00' AND {0} < '10000-01-01 00:00:00+00')"
_ONLY_INSTANTS = "CASE WHEN {0} >= '0001-01-01 00:00:00+00' AND {0} < '10000-01-01 00:00:00+00' THEN {0} END"
_NOT_PLAIN = _template("pg_catalog.array_ndims({0}) > 1 OR pg_catalog.array_lower({0}, 1) <> 1")
_YEARS = "infinity, and years before 1 or after 9999, are refused"

RULES = (
    Rule(("bool",), "boolean", listed=True),
    Rule(("int2", "int4"), "int", listed=True),
    Rule(("int8",), "long", listed=True),
    Rule(("oid",), "long", read=_template("CAST({} AS pg_catalog.int8)")),
    Rule(("float4",), "float", "NaN, infinities and -0.0 stay as they are", listed=True),
    Rule(("float8",), "double", "NaN, infinities and -0.0 stay as they are", listed=True),
    Rule(
        ("text", "varchar", "bpchar", "name", "char"),
        "string",
        "`char(n)` keeps its padding",
        listed=True,
    ),
    Rule(("citext", "xml", "jsonpath", "tsvector", "tsquery"), "string", read=_AS_TEXT),
    Rule(("bytea",), "binary"),
    Rule(("uuid",), "uuid"),
    Rule(("date",), "date", _YEARS, _template(_ONLY_DAYS), _template(_OUT_OF_DAYS)),
    Rule(("time",), "time", "`24:00` is refused", bad=_template("{} = '24:00'")),
    Rule(("timetz", "interval"), "string", "in ISO 8601", _AS_TEXT),
    Rule(("timestamp",), "timestamp", _YEARS, _template(_ONLY_DAYS), _template(_OUT_OF_DAYS)),
    Rule(("timestamptz",), "timestamptz", _YEARS, _template(_ONLY_INSTANTS), _template(_OUT_OF_INSTANTS)),
    Rule(("json", "jsonb"), "json", "numbers stay exact, the value `null` is not null; spaces are not kept"),
    Rule(("inet", "cidr", "macaddr", "macaddr8", "bit", "varbit", "pg_lsn", "xid", "xid8"), "string", read=_AS_TEXT),
    Rule(("point", "line", "lseg", "box", "path", "polygon", "circle"), "string", read=_AS_TEXT),
    Rule(("money",), None, "its text depends on the server's locale"),
    Rule(
        ("regclass", "regtype", "regproc", "regprocedure", "regoper", "regoperator", "regrole", "regnamespace"),
        None,
        "its text depends on names that change",
    ),
)
"""By name. Numerics are told by `numeric`, arrays by their elements, and other kinds of types by `KINDS`."""

KINDS = {
    "e": Rule(("enums",), "string", read=_AS_TEXT),
    "r": Rule(("ranges",), "string", read=_AS_TEXT),
    "m": Rule(("multiranges",), "string", read=_AS_TEXT),
    "c": Rule(("composite types",), "string", "as PostgreSQL prints a row", _AS_TEXT),
}
"""By `pg_type.typtype`, for types that users make. A domain is what its base type is."""

ARRAY_AS_TEXT = Rule(("other arrays",), "string", "as PostgreSQL prints them, `{1,2}`", _AS_TEXT)
NUMERIC_AS_TEXT = Rule(
    ("numeric without a precision, or of more than 38 digits",), "string", "every digit stays", _AS_TEXT
)
UNKNOWN = Rule(("types of other extensions",), None, "nothing is known of it")

_BY_NAME = {name: rule for rule in RULES for name in rule.names}


@dataclass(frozen=True)
class PostgresType:
    """A column's type, as the catalog has it, domains resolved.

    Args:
        name: `pg_type.typname`.
        kind: `pg_type.typtype`.
        modifier: `pg_attribute.atttypmod`; -1: none.
        element: that of an array; None: it is none.
    """

    name: str
    kind: str
    modifier: int = -1
    element: PostgresType | None = None


def rule_of(type_: PostgresType) -> Rule:
    """Return what becomes of a type."""
    if type_.element is not None:
        return _array(type_.element)
    if type_.name == "numeric":
        return numeric(type_.modifier)
    return KINDS.get(type_.kind) or _BY_NAME.get(type_.name, UNKNOWN)


def numeric(modifier: int) -> Rule:
    """Return the rule of `numeric(p,s)`: a decimal that holds every value of it, or text.

    The scale may be negative, or larger than the precision (PostgreSQL 15).
    """
    if modifier < 0:
        return NUMERIC_AS_TEXT
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    scale = scale - 0x800 if scale & 0x400 else scale
    digits, places = max(precision - min(scale, 0), scale), max(scale, 0)
    if digits > MAX_DECIMAL_PRECISION:
        return NUMERIC_AS_TEXT
    return Rule(("numeric(p,s)",), f"decimal({digits},{places})", "NaN is refused", bad=_NOT_A_NUMBER)


def as_text() -> Rule:
    """Return the rule of a column that is read as the server prints it."""
    return Rule((), "string", read=_AS_TEXT)


def _array(element: PostgresType) -> Rule:
    rule = rule_of(element)
    if element.element is not None or element.kind != "b" or not rule.listed:
        return ARRAY_AS_TEXT if rule.type is not None else rule
    about = "of one dimension that begins at 1; others are refused"
    return Rule((f"{element.name}[]",), f"list<{rule.type}>", about, bad=_NOT_PLAIN)


def table_of_types() -> list[tuple[str, str, str]]:
    """Return what docs/sources.md shows: the types of PostgreSQL, the logical type, and what to know of it."""
    decimal = numeric((38 << 16 | 9) + 4)
    lists = [name for rule in RULES if rule.listed for name in rule.names]
    rows = [
        *((", ".join(rule.names), rule.type, rule.about) for rule in RULES if rule.type is not None),
        ("numeric(p,s)", "decimal(p,s)", decimal.about),
        (NUMERIC_AS_TEXT.names[0], NUMERIC_AS_TEXT.type, NUMERIC_AS_TEXT.about),
        (f"arrays of {', '.join(lists)}", "list<…>", _array(PostgresType("int4", "b")).about),
        *((rule.names[0], rule.type, rule.about) for rule in (ARRAY_AS_TEXT, *KINDS.values())),
        ("domains", "that of the base type", ""),
        *((", ".join(rule.names), None, rule.about) for rule in (*RULES, UNKNOWN) if rule.type is None),
    ]
    return [(names, type_ or "refused", about) for names, type_, about in rows]
