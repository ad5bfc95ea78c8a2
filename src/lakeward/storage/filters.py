"""Row filters: user SQL predicates, checked once, applied by DuckDB on every arm so that they mean the same everywhere.

An arm that can may also use `conjuncts` to leave out rows early; what it leaves out must be false for the predicate.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from lakeward.errors import SqlError
from lakeward.types.schema import IDENTITY_COLUMNS, ROW_ID, ROW_INDEX, VERSION, Schema

# Scalar functions that look outside the row, or differ from one call to the next: none of them has a place in a filter
# that is to give the same rows on every arm. Nor have those that wait or log.
_FORBIDDEN_FUNCTIONS = frozenset(
    {
        "age",
        "current_catalog",
        "current_connection_id",
        "current_database",
        "current_date",
        "current_localtime",
        "current_localtimestamp",
        "current_query",
        "current_query_id",
        "current_role",
        "current_schema",
        "current_schemas",
        "current_setting",
        "current_time",
        "current_timestamp",
        "current_transaction_id",
        "current_user",
        "currval",
        "error",
        "gen_random_uuid",
        "get_current_time",
        "get_current_timestamp",
        "getenv",
        "getvariable",
        "has_any_column_privilege",
        "has_schema_privilege",
        "has_table_privilege",
        "localtime",
        "localtimestamp",
        "nextval",
        "now",
        "pg_sleep",
        "rand",
        "random",
        "session_user",
        "setseed",
        "setval",
        "sleep_ms",
        "stats",
        "today",
        "transaction_timestamp",
        "txid_current",
        "user",
        "uuid",
        "uuidv4",
        "uuidv7",
        "version",
        "vector_type",
        "write_log",
    }
)
_CLASS_NAME = re.compile(r"(?: for)? <class '[^']*'>")
_MISSING_PART = re.compile(r"Required keyword: '\w+' missing")
_FORBIDDEN_PREFIXES = ("read_", "columns")
_COUNTERS = (ROW_INDEX, ROW_ID, VERSION)
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}
_MIRRORED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}


@dataclass(frozen=True)
class Conjunct:
    """One top-level `column <operator> integer` of a predicate; a row for which it is not true can't be wanted.

    The column is one of the dataset's, or `__row_index`, `__row_id` or `__version`.
    """

    column: str
    operator: str
    value: int


@dataclass(frozen=True)
class Filter:
    """A checked predicate: DuckDB SQL over the dataset's columns, the columns that it reads, and its simple parts.

    `spans` are ranges of `__row_index`, from the first up to before the second; a row in none of them can't be wanted.
    None: any can. `pinned` are the columns of which a row must have one of some given values.
    """

    sql: str
    columns: tuple[str, ...]
    conjuncts: tuple[Conjunct, ...]
    spans: tuple[tuple[int, int], ...] = ()
    pinned: frozenset[str] = frozenset()


def within(spans: Sequence[tuple[int, int]]) -> Filter:
    """Return the filter of the rows whose `__row_index` is in one of some ranges, each up to before its end."""
    each = " OR ".join(f"({ROW_INDEX} >= {start:d} AND {ROW_INDEX} < {end:d})" for start, end in spans)
    least, most = min(start for start, _ in spans), max(end for _, end in spans)
    conjuncts = (Conjunct(ROW_INDEX, ">=", least), Conjunct(ROW_INDEX, "<", most))
    return Filter(each, (ROW_INDEX,), conjuncts, tuple(spans))


def parse_filter(text: str, schema: Schema, dataset: str) -> Filter:
    """Check a row filter.

    Args:
        text: a SQL predicate, as in a WHERE clause.
        schema: the dataset's columns; identity columns may be named too.
        dataset: its name, for the error.

    Raises:
        SqlError: it is not one expression, or reads anything but the row's own columns.
    """

    def refuse(reason: str, next_step: str | None = None) -> SqlError:
        return SqlError(f"dataset {dataset}: filter {text!r} {reason}", next_step=next_step, dataset=dataset)

    try:
        return _checked(text, schema, refuse)
    except RecursionError:
        raise SqlError(
            f"dataset {dataset}: a filter of {len(text):,} characters is nested too deeply",
            next_step="a list of values is written with IN",
            dataset=dataset,
        ) from None


def _checked(text: str, schema: Schema, refuse: Callable[..., SqlError]) -> Filter:
    try:
        # In parentheses: text that closes them early and goes on does not parse.
        statements = sqlglot.parse(f"SELECT 1 WHERE (\n{text}\n)", read="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise refuse(f"is not a SQL predicate: {_reason(error)}") from None
    statement = statements[0] if len(statements) == 1 else None
    where = statement.args.get("where") if isinstance(statement, exp.Select) else None
    outer = {"expressions", "where", "kind", "operation_modifiers"}
    if not isinstance(where, exp.Where) or not isinstance(where.this, exp.Paren):
        raise refuse("is not one SQL predicate")
    if any(value for name, value in statement.args.items() if name not in outer):  # type: ignore[union-attr]
        raise refuse("is not one SQL predicate")
    predicate = where.this.this
    if isinstance(predicate, exp.Alias | exp.PropertyEQ):
        raise refuse("is not one SQL predicate")
    known = {name.casefold(): name for name in (*schema.names, *IDENTITY_COLUMNS)}
    columns: dict[str, None] = {}
    for node in predicate.walk():
        if isinstance(node, exp.Query | exp.Subquery | exp.Placeholder | exp.Parameter | exp.Star | exp.Window):
            raise refuse("may use only the columns of the row: no subquery, parameter, star or window")
        if isinstance(node, exp.AggFunc):
            raise refuse("may not aggregate")
        if isinstance(node, exp.Func | exp.Columns) and (called := _forbidden(node)):
            raise refuse(f"may not call {called}()")
        if isinstance(node, exp.Column):
            # DuckDB reads `s.a` as a field of the struct s where no table is called s.
            name = node.parts[0].name
            if name.casefold() not in known:
                near = difflib.get_close_matches(name, known.values(), n=1)
                hint = f"did you mean {near[0]}?" if near else f"the columns are {', '.join(schema.names)}"
                raise refuse(f"names the unknown column {name!r}", hint)
            columns[known[name.casefold()]] = None
    conjuncts = tuple(_conjuncts(predicate, schema, known))
    return Filter(predicate.sql(dialect="duckdb"), tuple(columns), conjuncts, pinned=_pinned(predicate, known))


def below(where: Filter | None, position: int) -> Filter:
    """Return a filter narrowed to rows whose `__row_index` is less than `position`."""
    return _narrowed(where, "<", position)


def behind(where: Filter | None, position: int) -> Filter:
    """Return a filter narrowed to rows whose `__row_index` is greater than `position`."""
    return _narrowed(where, ">", position)


def _narrowed(where: Filter | None, operator: str, position: int) -> Filter:
    first = f"{ROW_INDEX} {operator} {position:d}"
    conjunct = Conjunct(ROW_INDEX, operator, position)
    if where is None:
        return Filter(first, (ROW_INDEX,), (conjunct,))
    columns = tuple(dict.fromkeys((*where.columns, ROW_INDEX)))
    return replace(where, sql=f"({where.sql}) AND {first}", columns=columns, conjuncts=(*where.conjuncts, conjunct))


def _parts(predicate: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what all must be true."""
    for part in predicate.flatten() if isinstance(predicate, exp.And) else [predicate]:
        yield part.unnest()


def _pinned(predicate: exp.Expr, known: dict[str, str]) -> frozenset[str]:
    """Return the columns that are compared with values alone, as in `id = 7` and `id IN (7, 8)`."""
    found: set[str] = set()
    for part in _parts(predicate):
        if isinstance(part, exp.EQ):
            sides = [part.this, part.expression]
        elif isinstance(part, exp.In) and part.expressions:
            sides = [part.this, *part.expressions]
        else:
            continue
        columns = [side for side in sides if isinstance(side, exp.Column) and len(side.parts) == 1]
        others = [side for side in sides if side not in columns]
        if len(columns) == 1 and not any(side.find(exp.Column) for side in others):
            found.add(known[columns[0].name.casefold()])
    return frozenset(found)


def _conjuncts(predicate: exp.Expr, schema: Schema, known: dict[str, str]) -> list[Conjunct]:
    found: list[Conjunct] = []
    for part in _parts(predicate):
        operator = _COMPARISONS.get(type(part))
        if operator is None:
            continue
        left, right = part.this, part.expression
        if isinstance(right, exp.Column):
            left, right, operator = right, left, _MIRRORED[operator]
        value = _integer(right)
        if not isinstance(left, exp.Column) or len(left.parts) != 1 or value is None:
            continue
        name = known[left.name.casefold()]
        if name in _COUNTERS or (name in schema.names and schema.column(name).type.kind in ("int", "long")):
            found.append(Conjunct(name, operator, value))
    return found


def _integer(node: exp.Expr) -> int | None:
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if not isinstance(literal, exp.Literal) or literal.is_string or not literal.name.isdigit():
        return None
    value = -int(literal.name) if negative else int(literal.name)
    return value if -(2**63) <= value < 2**63 else None


def _forbidden(node: exp.Expr) -> str | None:
    """Return the function's name if it has no place in a filter. One has several: ours, sqlglot's and DuckDB's."""
    names = {node.name.casefold()} if isinstance(node, exp.Anonymous) else set()
    names.add(node.sql(dialect="duckdb").partition("(")[0].strip().casefold())
    if isinstance(node, exp.Func):
        names.update(name.casefold() for name in type(node).sql_names())
    return next((name for name in names if name in _FORBIDDEN_FUNCTIONS or name.startswith(_FORBIDDEN_PREFIXES)), None)


def _reason(error: sqlglot.errors.SqlglotError) -> str:
    """Return what the parser found, without its classes and without places in the text that we put around a filter."""
    found = error.errors if isinstance(error, sqlglot.errors.ParseError) else []
    if not found:
        return "a quotation or comment has no end"
    text = _CLASS_NAME.sub("", str(found[0].get("description") or "it can't be parsed"))
    return _MISSING_PART.sub("a part of it is missing", text)


def quote_identifier(name: str) -> str:
    """Return a name as a quoted SQL identifier (doubled quotes), for DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def quote_list(names: Sequence[str]) -> str:
    """Return names as a comma-separated list of quoted identifiers, for DuckDB."""
    return ", ".join(quote_identifier(name) for name in names)
