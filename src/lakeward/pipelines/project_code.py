"""Adds to pipelines the project's code that their Python nodes call, and checks that it can be called."""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path

from lakeward.pipelines.nodes import FitNode, PythonNode
from lakeward.pipelines.origin import Path as OriginPath
from lakeward.pipelines.problems import Problems
from lakeward.pipelines.python.code import Call, function_in, parse_call, parse_code, read_code
from lakeward.pipelines.python.python_file import read_python_file
from lakeward.pipelines.spec import Pipeline, read_spec
from lakeward.pipelines.spec_checks import listed, nearest


def read_python_pipelines(root: Path, file: str) -> list[Pipeline]:
    """Return the pipelines that a `.py` file declares; none, if it is there for others to import.

    Args:
        root: the project's folder.
        file: its path in the project.

    Raises:
        SpecError: with file and line.
    """
    problems = Problems()
    pipelines = []
    for data, origin in read_python_file(read_code(root, file), file):
        with problems.collect():
            pipelines.append(with_code(read_spec(data, origin), root))
    problems.raise_all()
    return pipelines


def with_code(pipeline: Pipeline, root: Path) -> Pipeline:
    """Return the pipeline with the code of its Python nodes, as it is in the project's folder now.

    Raises:
        SpecError: it is not there, is no Python, or does not take what the node gives it; with file and line.
    """
    code: dict[str, str] = {}
    problems = Problems()
    for name, node in pipeline.spec.nodes.items():
        if isinstance(node, PythonNode):
            with problems.collect():
                code |= _code(pipeline, name, node.python.call, "call", node.inputs, root)
        elif isinstance(node, FitNode):
            with problems.collect():
                code |= _code(pipeline, name, node.fit.estimator, "estimator", (), root)
    problems.raise_all()
    return pipeline.with_code(code)


def _code(
    pipeline: Pipeline, name: str, called: str, key: str, arguments: Collection[str], root: Path
) -> dict[str, str]:
    """Return the code of the function that a node names with a key, and gives arguments."""
    path, call = ("nodes", name, pipeline.spec.nodes[name].kind), parse_call(called)
    assert call is not None, "read_spec has checked it"
    if not (root / call.file).is_file():
        raise pipeline.origin.error(
            f"node {name!r} calls a function in {call.file}, which the project does not have",
            (*path, key),
            next_step=f"name a file by its path in the project's folder {root}",
        )
    code = read_code(root, call.file)
    _check_function(pipeline, path, key, arguments, call, parse_code(code[call.file], call.file))
    return code


def _check_function(
    pipeline: Pipeline, path: OriginPath, key: str, arguments: Collection[str], call: Call, tree: ast.Module
) -> None:
    function = function_in(tree, call.function)
    if function is None:
        names = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
        raise pipeline.origin.error(
            f"{call.file} has no function {call.function!r}; it has {listed(names) or 'none'}",
            (*path, key),
            next_step=nearest(call.function, names) or "name a function that is defined at its top level",
        )
    takes = function.args
    named = [each.arg for each in (*takes.args, *takes.kwonlyargs)]
    for argument in arguments:
        if argument not in named and takes.kwarg is None:
            raise pipeline.origin.error(
                f"{call} (line {function.lineno}) takes no argument {argument!r}; it takes {listed(named) or 'none'}",
                (*path, "inputs", argument),
                next_step=nearest(argument, named) or f"write `def {call.function}({listed(arguments)})`",
            )
    for argument in _required(takes):
        if argument not in arguments:
            raise pipeline.origin.error(
                f"{call} (line {function.lineno}) needs its argument {argument!r}, which no input gives",
                (*path, "inputs"),
                next_step=f"add an input {argument!r}, or give the argument a default",
            )


def _required(takes: ast.arguments) -> list[str]:
    """Return the arguments without a default; one that takes no name is among them in any case."""
    plain = [each.arg for each in takes.args]
    defaults = len(takes.defaults)
    positional = [each.arg for each in takes.posonlyargs]
    required = plain[: max(0, len(plain) - defaults)]
    keyword = [each.arg for each, given in zip(takes.kwonlyargs, takes.kw_defaults, strict=True) if given is None]
    return [*positional[: max(0, len(positional) + len(plain) - defaults)], *required, *keyword]
