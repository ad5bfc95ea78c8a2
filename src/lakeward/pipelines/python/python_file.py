"""Reads the pipelines that a `.py` file declares with `lakeward.transform`. To know them, the file is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from lakeward.errors import SpecError
from lakeward.pipelines.origin import Origin, Path, Place
from lakeward.pipelines.python.code import parse_code
from lakeward.pipelines.python.declaring import OF_NODE, OF_OUTPUT, Declaration, collecting
from lakeward.pipelines.python.loading import Code


def read_python_file(code: Mapping[str, str], file: str) -> list[tuple[dict[str, Any], Origin]]:
    """Return the data and places of every pipeline of a file, in the form of their YAML.

    Args:
        code: the file and those that it imports (see `read_code`).
        file: its path in the project.

    Raises:
        SpecError: the file fails when it is run, or a function in it can't be called by its name; with file and line.
    """
    loaded = Code(code)
    with collecting() as declared:
        try:
            module = loaded.run(file)
        except (Exception, SystemExit) as error:
            raised = loaded.raised(error)
            raise SpecError(
                f"{file}: can't be run: {raised}",
                next_step=f"mend {raised.file or file}",
                file=raised.file or file,
                line=raised.line,
            ) from error
    tree = parse_code(code[file], file)
    mine = [each for each in declared if each.function.__module__ == module.__name__]
    return [_read(each, module, tree, file) for each in mine]


def _read(declaration: Declaration, module: ModuleType, tree: ast.Module, file: str) -> tuple[dict[str, Any], Origin]:
    name = declaration.function.__name__
    origin = _origin(declaration, tree, file)
    if vars(module).get(name) is not declaration.function:
        raise origin.error(
            f"the file has another {name!r} behind this one, or none at its top level: a build could not call it",
            next_step="give each function a name of its own, at the top level of the file",
        )
    if not isinstance(declaration.given["sources"], Mapping):
        raise origin.error(
            "'sources' is no mapping",
            ("nodes",),
            next_step='write sources={"orders": "main.raw.orders"}, or sources={} if there are none',
        )
    return declaration.spec(file), origin


def _origin(declaration: Declaration, tree: ast.Module, file: str) -> Origin:
    """Return the places of what the decorator says; of what is computed there, those of the function."""
    first = declaration.function.__code__.co_firstlineno
    here = Place(first, 1, first)
    node = ("nodes", declaration.node)
    keys: dict[Path, Place] = {(): here, node: here}
    values = dict(keys)
    for argument in _arguments(declaration.function, tree):
        if argument.arg is not None:
            path = _moved(argument.arg, declaration.node)
            keys[path] = Place(argument.lineno, argument.col_offset + 1, argument.lineno)
            for below, at, key in _places(argument.value, path):
                (keys if key else values)[below] = Place(at.lineno, at.col_offset + 1, at.lineno)
    inputs: Path = (*node, "python", "inputs")
    for source, place in [(path, place) for path, place in values.items() if len(path) == 2 and path[0] == "nodes"]:
        values.setdefault((*source, "source"), place)
        values[(*inputs, source[1])] = place
    values[inputs] = values.get(("nodes",), here)
    return Origin(file, keys, values)


def _arguments(function: FunctionType, tree: ast.Module) -> list[ast.keyword]:
    """Return the arguments of the decorator above a function; none, if it is not written there."""
    first = function.__code__.co_firstlineno
    for each in tree.body:
        if isinstance(each, ast.FunctionDef) and each.decorator_list and each.decorator_list[0].lineno == first:
            calls = [call for call in each.decorator_list if isinstance(call, ast.Call)]
            return next((call.keywords for call in calls if any(one.arg == "dataset" for one in call.keywords)), [])
    return []


def _places(value: ast.expr, path: Path) -> Iterator[tuple[Path, ast.expr, bool]]:
    """Yield the place of a written value and of what is in it, and whether it is that of a key."""
    yield path, value, False
    if isinstance(value, ast.Dict):
        for key, each in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield (*path, key.value), key, True
                yield from _places(each, (*path, key.value))
    elif isinstance(value, ast.List | ast.Tuple):
        for index, each in enumerate(value.elts):
            yield from _places(each, (*path, index))


def _moved(argument: str, node: str) -> Path:
    """Return where an argument is in the YAML form."""
    if argument == "sources":
        return ("nodes",)
    if argument in OF_NODE:
        return ("nodes", node, "python", argument)
    return ("outputs", 0, argument) if argument in OF_OUTPUT else (argument,)
