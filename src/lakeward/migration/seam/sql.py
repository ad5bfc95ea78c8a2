"""Finds tables in SQL: sqlglot tells tables from columns, aliases and CTEs; what it can't tell counts.

The tokens are what is counted, and the syntax tree may only excuse one of them. So nothing goes unseen where the
grammar does not know a statement, or where the text is a part of one that is put together at run time.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lakeward.migration.seam.tables import HOLE, Mention, Tables

_STATEMENTS = (
    exp.Query,
    exp.Insert,
    exp.Update,
    exp.Delete,
    exp.Merge,
    exp.Copy,
    exp.Create,
    exp.Drop,
    exp.Alter,
    exp.TruncateTable,
    exp.Grant,
    exp.Revoke,
    exp.Comment,
)
"""What the tree is believed for. A bare expression or a command may be a part of anything."""

_VERBS = frozenset(
    re.findall(
        r"\w+",
        "select insert update delete merge copy truncate create alter drop grant revoke comment lock vacuum analyze "
        "reindex cluster refresh",
    )
)
_ANY_VERB = re.compile(rf"\b(?:{'|'.join(sorted(_VERBS))})\b", re.IGNORECASE)
_FIRST_WORDS = _VERBS | {"with", "("}
_STRINGS = frozenset(kind for kind in TokenType if kind.name.endswith("_STRING") or kind is TokenType.STRING)
_DOT = [TokenType.DOT]
_NAMES = frozenset((TokenType.VAR, TokenType.IDENTIFIER))

# Fields of `str.format`, f-strings, JavaScript, Ruby and shell; of `%`; in that order.
_PLACEHOLDER = re.compile(r"[$#]?\{[^{}]*\}|%\(\w+\)[a-z]|%[sdrvqIL]")
# Before a word, they make a parameter of it: `:schema.table`, `$schema.table`.
_SIGILS = frozenset(":$@%#&!{}")
_MAX_NESTING = 5


def read_string(text: str, tables: Tables) -> list[Mention]:
    """Return the accesses in a string of a program: SQL, a part of it, a table's name, or something else."""
    return _read_string(text, tables, "text", 0) if tables.starts(text) else []


def _read_string(text: str, tables: Tables, kind: str, nesting: int) -> list[Mention]:
    """Read a string that names a table, in `nesting` other ones; `kind` is what the outer statement does."""
    named = tables.named_by(text)
    if named is not None:
        return [Mention(0, kind if nesting else "name", named)]
    if nesting == _MAX_NESTING or not _ANY_VERB.search(text):
        # No SQL in sight: what looks like a comment of SQL may be an option of a program.
        return tables.words(text, kind)
    return read_sql(text, tables, kind, nesting)


def read_sql(text: str, tables: Tables, kind: str = "text", nesting: int = 0) -> list[Mention]:
    """Return the accesses in statements of SQL.

    Args:
        text: any number of them. Placeholders may stand in it.
        tables: what is looked for.
        kind: what mentions are that no statement can be told of.
        nesting: how many strings of SQL the text stands in.
    """
    filled = _PLACEHOLDER.sub(lambda found: found[0] if tables.starts(found[0]) else HOLE, text)
    try:
        tokens = Postgres().tokenize(filled)
    except SqlglotError:
        return tables.words(filled, kind)
    starts = tables.starts(filled)
    found: list[Mention] = []
    for statement in _split(tokens):
        found += _read_statement(statement, filled, starts, tables, kind)
        found += _read_strings(statement, starts, tables, kind, nesting)
    return sorted(found, key=lambda each: each.ordinal)


def _split(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def _read_statement(
    statement: list[Token], text: str, starts: Sequence[int], tables: Tables, kind: str
) -> Iterator[Mention]:
    candidates = [
        (index, table)
        for index, token in enumerate(statement)
        if token.token_type not in _STRINGS and (table := tables.find(_qualified(statement, index))) is not None
    ]
    if not candidates:
        return
    tree = _parse(statement, text)
    if tree is None:
        candidates = _without_qualifiers(statement, candidates)
        roles: dict[int, str | None] = {}
    else:
        roles = _roles(tree)
    for index, table in candidates:
        token = statement[index]
        # A keyword that the tree made no identifier of is meant as one: ROWS, if a table is called so.
        keyword = tree is not None and token.token_type not in _NAMES
        role = roles.get(token.start, None if keyword else _verb(statement[:index], kind))
        if role is not None:
            yield Mention(bisect_left(starts, token.start), role, table)


def _read_strings(
    statement: list[Token], starts: Sequence[int], tables: Tables, kind: str, nesting: int
) -> Iterator[Mention]:
    """Read what is quoted in a statement: names for `regclass`, bodies of functions, SQL for EXECUTE."""
    if statement[0].text.upper() == "COMMENT":
        return
    for index, token in enumerate(statement):
        if token.token_type in _STRINGS and tables.starts(token.text):
            before = bisect_left(starts, _start_of_string(statement, index))
            for each in _read_string(token.text, tables, _verb(statement[:index], kind), nesting + 1):
                yield Mention(before + each.ordinal, each.kind, each.table)


def _start_of_string(statement: Sequence[Token], index: int) -> int:
    token = statement[index]
    # The rest of a command is one string, which sqlglot says to be at its end.
    whole = token.end - token.start + 1 >= len(token.text)
    return token.start if whole or index == 0 else statement[index - 1].end + 1


def _qualified(statement: Sequence[Token], index: int) -> list[str]:
    """Return the identifier at `index` with the qualifiers before it."""
    parts = [statement[index].text]
    while index >= 2 and statement[index - 1].token_type is TokenType.DOT:
        index -= 2
        parts.insert(0, statement[index].text if _is_known(statement, index) else HOLE)
    return parts


def _is_known(statement: Sequence[Token], index: int) -> bool:
    """Return whether a qualifier says what it is: it is a word, and no parameter."""
    token = statement[index]
    quoted = token.token_type is TokenType.IDENTIFIER
    word = quoted or token.text.replace("$", "_").isidentifier()
    return word and (index == 0 or statement[index - 1].text not in _SIGILS)


def _without_qualifiers(statement: Sequence[Token], candidates: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Leave out `name` in `name.column`, if the same text names the table elsewhere."""
    ends = {index for index, _ in candidates if [each.token_type for each in statement[index + 1 : index + 2]] != _DOT}
    named = {table for index, table in candidates if index in ends}
    return [(index, table) for index, table in candidates if index in ends or table not in named]


def _verb(before: Sequence[Token], otherwise: str) -> str:
    """Return the nearest verb before a token, in lower case."""
    return next((token.text.lower() for token in reversed(before) if token.text.lower() in _VERBS), otherwise)


def _parse(statement: list[Token], text: str) -> exp.Expr | None:
    """Return the statement's tree; None if the grammar does not know it, or it is none."""
    if statement[0].text.lower() not in _FIRST_WORDS:
        return None
    try:
        with _unlogged():
            trees = Postgres().parser().parse(statement, text)
    except (SqlglotError, RecursionError):
        return None
    tree = trees[0] if len(trees) == 1 else None
    return tree if isinstance(tree, _STATEMENTS) else None


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep sqlglot from warning of each statement that it does not know: here that is nothing to be warned of."""

    def none(record: logging.LogRecord) -> bool:
        return False

    logger = logging.getLogger("sqlglot")
    logger.addFilter(none)
    try:
        yield
    finally:
        logger.removeFilter(none)


def _roles(tree: exp.Expr) -> dict[int, str | None]:
    """Return the kind of access by where each identifier starts; None if it is no access."""
    roles: dict[int, str | None] = {}
    for identifier in tree.find_all(exp.Identifier):
        start = identifier.meta.get("start")
        if start is not None:
            # A tree may hold an identifier twice; one access is enough.
            roles[start] = roles.get(start) or _kind(identifier)
    return roles


def _kind(identifier: exp.Identifier) -> str | None:
    holder = identifier.parent
    if isinstance(holder, exp.Table) and identifier.arg_key == "this":
        excused = isinstance(holder.parent, exp.Lock) or _is_shadowed(holder)
    else:
        # The type of its rows is the table, too: `NULL::lakeward.dataset_rows`.
        excused = not isinstance(holder.parent if isinstance(holder, exp.Dot) else holder, exp.DataType)
    if excused:
        return None
    around = identifier.find_ancestor(*_STATEMENTS)
    if around is None or isinstance(around, exp.Query):
        return "select"
    return "truncate" if isinstance(around, exp.TruncateTable) else str(around.key)


def _is_shadowed(table: exp.Table) -> bool:
    """Return whether a CTE in sight bears the table's name. What is written to is never a CTE."""
    if table.db or _is_target(table):
        return False
    child: exp.Expr = table
    through: exp.Expr | None = None
    while (parent := child.parent) is not None:
        if isinstance(child, exp.CTE):
            through = child
        ctes = parent.args.get("with_")
        if isinstance(ctes, exp.With) and table.name.lower() in _in_sight(ctes, through if child is ctes else None):
            return True
        child = parent
    return False


def _is_target(table: exp.Table) -> bool:
    holder = table.parent.parent if isinstance(table.parent, exp.Schema) else table.parent
    return isinstance(holder, exp.Insert | exp.Update | exp.Delete | exp.Merge) and table.arg_key == "this"


def _in_sight(ctes: exp.With, inside: exp.Expr | None) -> set[str]:
    """Return the names that can be used: within a CTE those before it, and with RECURSIVE all."""
    names: set[str] = set()
    for each in ctes.expressions:
        if each is inside and not ctes.args.get("recursive"):
            return names
        names.add(each.alias.lower())
    return names
