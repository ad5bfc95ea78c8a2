"""Reads YAML into plain data and the places of its parts.

Stricter than YAML: a repeated key is an error (YAML loaders keep the last one in silence), keys are text as written (so
that `on:` and `true:` are what they look like), only `true`, `false`, `null` and numbers are not text, and there are no
anchors.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from lakeward.errors import SpecError
from lakeward.pipelines.origin import Origin, Path, Place

MAX_BYTES = 4_000_000
MAX_DEPTH = 64


class _Loader(yaml.SafeLoader):
    """YAML 1.2's core types. 1.1's make false of the column name `no`, and a date of a version number."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's own form)


for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", "n~"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), [*_first])
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^$"), [""])


def read_document(text: str, file: str, *, indent: int = 0) -> tuple[dict[str, Any], Origin]:
    """Read one YAML mapping.

    Args:
        text: the document.
        file: its name for errors.
        indent: columns that were cut off before each line, to be added to the columns of places.

    Raises:
        SpecError: with file and line: not YAML, not a mapping, a repeated key, an anchor, more than one document.
    """
    reader = _Reader(file, indent)
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SpecError(
            f"{file}:{mark.line + 1 if mark else 1}: not valid YAML: {error.problem or error.context}",
            next_step="look at the indentation and quotes around that line; a value with `: ` or `#` needs quotes",
            file=file,
            line=mark.line + 1 if mark else 1,
            column=mark.column + 1 + indent if mark else None,
        ) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise SpecError(f"{file}: not valid YAML: {error}", file=file, line=None) from None
    if node is None:
        raise SpecError(
            f"{file}:1: the file is empty",
            next_step="a pipeline needs `pipeline`, `nodes` and `outputs`",
            file=file,
            line=1,
        )
    data = reader.value(node, ())
    if not isinstance(data, dict):
        raise reader.origin.error("a pipeline is a mapping of keys to values", ())
    return data, reader.origin


class _Reader:
    """Walks the nodes of one document."""

    def __init__(self, file: str, indent: int) -> None:
        self.indent = indent
        self.keys: dict[Path, Place] = {}
        self.values: dict[Path, Place] = {}
        self.origin = Origin(file, self.keys, self.values)
        self.seen: set[int] = set()

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.values[path] = self.place(node)
        if id(node) in self.seen:
            raise self.origin.error("anchors and aliases are not read here", path, next_step="write the value out")
        self.seen.add(id(node))
        if len(path) > MAX_DEPTH:
            raise self.origin.error(f"nested deeper than {MAX_DEPTH} levels", path)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self.scalar(node, path)

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.origin.error("a key is text", path)
            below = (*path, key.value)
            place = self.place(key)
            if key.value in data:
                first = self.keys[below].line
                self.keys[below] = place
                raise self.origin.error(
                    f"the key {key.value!r} stands twice (first in line {first})",
                    below,
                    key=True,
                    next_step="keep one of them",
                )
            self.keys[below] = place
            data[key.value] = self.value(item, below)
        return data

    def scalar(self, node: yaml.Node, path: Path) -> Any:
        kind = str(node.tag).rpartition(":")[2]
        text = str(node.value)
        if kind == "str":
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text == "true"
        if kind == "int":
            return int(text)
        if kind == "float":
            return float(text)
        raise self.origin.error(f"the tag {node.tag!r} is not read here", path, next_step="remove it")

    def place(self, node: yaml.Node) -> Place:
        mark = node.start_mark
        block = getattr(node, "style", None) in ("|", ">")
        return Place(mark.line + 1, mark.column + 1 + self.indent, mark.line + (2 if block else 1))
