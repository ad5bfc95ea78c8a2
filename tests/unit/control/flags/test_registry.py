"""Every place in the product that writes or reads has a registered name: one that has not is found here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import lakeward
from lakeward.control.flags.registry import COMPARERS, KEEPERS, PREFERENCES, READERS, WRITERS
from lakeward.control.routes import MODES

PACKAGE = Path(lakeward.__file__).parent
KINDS = {"writer": {*WRITERS, *KEEPERS}, "reader": {*READERS, *COMPARERS}}


def names_in(tree: ast.AST, kind: str) -> Iterator[str]:
    """Yield the texts that a module passes as `kind=`, has as its default, or calls `KIND` or `…_KIND`."""
    for node in ast.walk(tree):
        values: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            values = [keyword.value for keyword in node.keywords if keyword.arg == kind]
        elif isinstance(node, ast.FunctionDef):
            arguments = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            values = [default for argument, default in arguments if argument.arg == kind]
        elif isinstance(node, ast.Assign):
            named = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if any(each == kind.upper() or each.endswith(f"_{kind.upper()}") for each in named):
                values = [node.value]
        yield from (value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str))


def test_every_name_in_the_product_is_registered() -> None:
    found: dict[tuple[str, str], str] = {}
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "testing") or path.is_relative_to(PACKAGE / "control" / "flags"):
            continue
        text = path.read_text(encoding="utf-8")
        if any(kind in text.lower() for kind in KINDS):
            tree = ast.parse(text)
            found.update({(kind, name): path.name for kind in KINDS for name in names_in(tree, kind)})
    assert {kind for kind, _ in found} == set(KINDS) and len(found) > 15, "the search finds what there is"
    assert {each: where for each, where in found.items() if each[1] not in KINDS[each[0]]} == {}


def test_a_name_that_is_missing_is_found() -> None:
    for text in ("f(reader='a.b')", "def f(*, reader: str = 'a.b'): ...", "READER = 'a.b'", "RUN_READER = 'a.b'"):
        assert list(names_in(ast.parse(text), "reader")) == ["a.b"]


def test_defaults_are_within_the_ceilings() -> None:
    assert all(writer.allows(writer.default) and writer.ceiling in MODES for writer in WRITERS.values())
    assert all(reader.default in PREFERENCES for reader in READERS.values())
