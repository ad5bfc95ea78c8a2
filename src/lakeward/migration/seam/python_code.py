"""Finds accesses in Python: SQL in strings, however they are put together, and names that are a table's.

What Python joins is joined before it is read: f-strings, `+`, adjacent literals, and constants of the same file that
hold a name. What is only known at run time is a hole in the text.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from lakeward.migration.seam.sql import read_string
from lakeward.migration.seam.tables import HOLE, Mention, Tables

Found = tuple[int, Mention]
"""The line, counted from 1, and what is there."""

_NAME = re.compile(r'[\w."]{1,200}')


def read_python(text: str, tables: Tables) -> list[Found]:
    """Return the accesses in a Python file, in no order.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the text is not Python of this interpreter, or is nested
            too deeply for it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of invalid escapes: whoever runs the file gets them
        tree = ast.parse(text)
    reader = _Reader(text, tables, _constants(tree))
    reader.visit(tree)
    return reader.found


class _Reader(ast.NodeVisitor):
    def __init__(self, text: str, tables: Tables, constants: dict[str, str]) -> None:
        self.found: list[Found] = []
        self._tables = tables
        self._constants = constants
        self._source = text.encode()
        self._line_starts = [0, *accumulate(len(line) + 1 for line in self._source.split(b"\n"))]

    def visit_Expr(self, node: ast.Expr) -> None:
        """Pass over docstrings, and other strings that nothing reads."""
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Read a string, or bytes."""
        self._read_text(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Read an f-string as a whole."""
        self._read_text(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Read what `+` joins as a whole."""
        if isinstance(node.op, ast.Add):
            self._read_text(node)
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Count a name that is the table's, or that a constant with the table's name has."""
        constant = self._constants.get(node.id) if isinstance(node.ctx, ast.Load) else None
        table = self._tables.named_by(constant) if constant else None
        if table is not None:
            self.found.append((node.lineno, Mention(0, "name", table)))
        else:
            self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        """Count every identifier that a node holds, of whatever sort, and go on below it."""
        for _, value in ast.iter_fields(node):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    self.visit(each)
                elif isinstance(each, str) and (table := self._named_by_identifier(each)) is not None:
                    self.found.append((getattr(node, "lineno", 1), Mention(0, "name", table)))

    def _named_by_identifier(self, dotted: str) -> str | None:
        """Return the table that an identifier, or a part of an import's dotted name, is called like."""
        return next((table for part in dotted.split(".") if (table := self._tables.find([part])) is not None), None)

    def _read_text(self, node: ast.expr) -> None:
        parts = list(_parts(node, self._constants))
        text = "".join(part if isinstance(part, str) else HOLE for part in parts)
        for mention in read_string(text, self._tables):
            self.found.append((self._line(node, mention.ordinal), mention))
        for part in parts:
            if isinstance(part, ast.expr):
                self.visit(part)

    def _line(self, node: ast.expr, ordinal: int) -> int:
        """Return the line of a mention: the name stands as often in the literals as in the text that they make.

        Where it comes from a constant it does not; then the literal's first line is near enough.
        """
        first = self._line_starts[node.lineno - 1] + node.col_offset
        last = self._line_starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        literal = self._source[first:last].decode()
        starts = self._tables.starts(literal)
        return node.lineno + literal.count("\n", 0, starts[ordinal] if ordinal < len(starts) else 0)


def _parts(node: ast.expr, constants: dict[str, str]) -> Iterator[str | ast.expr]:
    """Yield what a string expression is joined of: texts, and expressions that are known at run time only."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Constant(value=bytes(raw)):
            yield raw.decode("utf-8", "replace")
        case ast.Constant():
            return
        case ast.JoinedStr():
            for each in node.values:
                yield from _parts(each, constants)
        case ast.FormattedValue():
            yield from _parts(node.value, constants)
            if node.format_spec is not None:
                yield from (part for part in _parts(node.format_spec, constants) if isinstance(part, ast.expr))
        case ast.BinOp(op=ast.Add()):
            yield from _parts(node.left, constants)
            yield from _parts(node.right, constants)
        case ast.Name(id=name) if name in constants:
            yield constants[name]
        case _:
            yield node


def _constants(tree: ast.Module) -> dict[str, str]:
    """Return the names that are bound once in the file, and to a string that looks like a name."""
    bound: Counter[str] = Counter()
    values: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values |= _literal(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values |= _literal(name, value)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                values |= _literal(name, value)
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound[name] += 1
            case ast.alias(name=name, asname=asname):
                bound[asname or name] += 1
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound[name] += 1
            case _:
                pass
    return {name: value for name, value in values.items() if bound[name] == 1}


def _literal(name: str, value: ast.expr) -> dict[str, str]:
    parts = list(_parts(value, {}))
    text = "".join(part for part in parts if isinstance(part, str))
    return {name: text} if all(isinstance(part, str) for part in parts) and _NAME.fullmatch(text) else {}
