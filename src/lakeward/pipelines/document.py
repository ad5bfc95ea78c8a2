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
from lakeward.pipelines.problems import Problems

MAX_BYTES = 4_000_000
MAX_DEPTH = 64
HEADER_INDENT = 3
"""The `-- ` before each line of a header."""

_INDENTED_BY_TAB = re.compile(r" *\t\s*\S")


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


def read_document(
    text: str, file: str, problems: Problems | None = None, *, header_lines: int = 0, listed: str | None = None
) -> tuple[dict[str, Any], Origin]:
    """Read one YAML mapping.

    Args:
        text: the document.
        file: its name for errors.
        problems: where errors are noted behind which reading goes on: a repeated key, an anchor; None: they are raised.
        header_lines: how many lines it takes as the header of a `.sql` file; 0: it is no header.
        listed: a list alone is taken for what stands under this key; None: for a mistake.

    Raises:
        SpecError: with file and line: not YAML, not a mapping, more than one document, nested too deep.
    """
    noted = Problems() if problems is None else problems
    reader = _Reader(file, header_lines, noted)
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error, text, file, header_lines) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise SpecError(
            f"{file}: not valid YAML: {error}",
            next_step="take out control characters, and what is nested too deep",
            file=file,
            line=None,
        ) from None
    if node is None:
        raise SpecError(
            f"{file}:1: the file is empty",
            next_step="a pipeline needs `pipeline`, `nodes` and `outputs`; `lakeward init DIR` writes examples",
            file=file,
            line=1,
        )
    if listed is not None and isinstance(node, yaml.SequenceNode):
        data: Any = {listed: reader.value(node, (listed,))}
    else:
        data = reader.value(node, ())
    if not isinstance(data, dict):
        raise reader.origin.error(
            "a pipeline is a mapping of keys to values",
            next_step="begin with `pipeline: NAME`, with a space behind the colon",
        )
    if problems is None:
        noted.raise_all()
    return data, reader.origin


def _not_yaml(error: yaml.MarkedYAMLError, text: str, file: str, header_lines: int) -> SpecError:
    """Return the error for what can't be read at all. A tab is the usual cause, and YAML's own words hide it."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, None)
    reason = f"not valid YAML: {error.problem or error.context}"
    hint = "look at the indentation and quotes around that line; a value with `: ` or `#` needs quotes"
    tabs = [number for number, each in enumerate(text.split("\n"), start=1) if _INDENTED_BY_TAB.match(each)]
    if "\\t" in reason and tabs:
        line, column = tabs[0], 1
        reason = f"not valid YAML: indented by tabs, in {_lines(tabs)}"
        hint = "indent by spaces: two for each level"
    elif header_lines:
        hint = (
            "each comment line at the top is `-- key: value` of the header, with a space behind the colon; "
            "other comments go below the first line of the query"
        )
    column = column + HEADER_INDENT if column and header_lines else column
    return SpecError(f"{file}:{line}: {reason}", next_step=hint, file=file, line=line, column=column)


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10])) + (", …" if len(numbers) > 10 else "")
    return f"line{'s' if len(numbers) > 1 else ''} {shown}"


class _Reader:
    """Walks the nodes of one document."""

    def __init__(self, file: str, header_lines: int, problems: Problems) -> None:
        self.keys: dict[Path, Place] = {}
        self.values: dict[Path, Place] = {}
        self.origin = Origin(file, self.keys, self.values, header_lines)
        self.problems = problems
        self.seen: set[int] = set()

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.values[path] = self.place(node)
        if id(node) in self.seen:
            # Read once more, a few of them would make a file of any size.
            raise self.origin.error("anchors and aliases are not read here", path, next_step="write the value out")
        self.seen.add(id(node))
        if len(path) > MAX_DEPTH:
            raise self.origin.error(f"nested deeper than {MAX_DEPTH} levels", path, next_step="write it flatter")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self.scalar(node, path)

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.problems.add(
                    self.origin.error("a key is text", path, next_step="take `? `, brackets and braces out of the key")
                )
                continue
            below = (*path, key.value)
            if key.value in data:
                self.problems.add(self.twice(key.value, below, self.place(key)))
                continue
            self.keys[below] = self.place(key)
            data[key.value] = self.value(item, below)
        return data

    def twice(self, key: str, path: Path, again: Place) -> SpecError:
        """Return the error for a key that was there before; its first value is the one that is read."""
        first = self.keys[path]
        message = f"the key {key!r} stands twice (first in line {first.line})"
        return Origin(self.origin.file, {path: again}).error(message, path, key=True, next_step="keep one of them")

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
        self.problems.add(self.origin.error(f"the tag {node.tag!r} is not read here", path, next_step="remove it"))
        return text

    def place(self, node: yaml.Node) -> Place:
        mark = node.start_mark
        block = getattr(node, "style", None) in ("|", ">")
        indent = HEADER_INDENT if self.origin.header_lines else 0
        return Place(mark.line + 1, mark.column + 1 + indent, mark.line + (2 if block else 1))
