"""What a pipeline file says, checked: known keys, known kinds, names that can be told apart. Nothing is looked up here.

The YAML form is pinned by the design: later kinds of node and strategies add to it and rename nothing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import Field, SerializeAsAny

from lakeward.compute.place import line_and_column, sql_error
from lakeward.control.routes import ARM_MODES
from lakeward.discovery import discover
from lakeward.errors import LakewardError, SqlError
from lakeward.pipelines import stages, strategies
from lakeward.pipelines.expectation_spec import read_expectations
from lakeward.pipelines.nodes import (
    NODES,
    JoinNode,
    Node,
    SourceNode,
    SpecModel,
    SplitNode,
    StageNode,
    TransformNode,
    names_of,
)
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.spec_checks import (
    checked_model,
    dataset_name,
    known_keys,
    listed,
    mapping,
    nearest,
    one_of,
    shown,
)
from lakeward.pipelines.stage import Stage
from lakeward.pipelines.strategy import Strategy
from lakeward.types.schema import name_key

MAX_NAME_BYTES = 255


class OutputSpec(SpecModel):
    """One dataset that a pipeline writes.

    `from` is a node, `arm` is where the dataset is created (afterwards its route decides), `allow_empty` lets a build
    leave it with zero rows, `require_incremental` refuses a build that would compute everything anew, `expectations`
    are as they are written (see `read_expectations`).
    """

    dataset: str
    from_: str = Field(alias="from")
    strategy: str
    primary_key: list[str] = Field(default_factory=list)
    arm: str | None = None
    allow_empty: bool = False
    require_incremental: bool = False
    expectations: list[Any] = Field(default_factory=list)


class PipelineSpec(SpecModel):
    """A pipeline as it is stored when it is applied."""

    pipeline: str
    nodes: dict[str, SerializeAsAny[Node]]
    outputs: list[OutputSpec]
    tags: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class Pipeline:
    """A spec that passed, and where it was written.

    `one_off`: it is not applied, and runs once.
    """

    spec: PipelineSpec
    origin: Origin
    one_off: bool = False

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self.spec.pipeline

    @property
    def title(self) -> str:
        """What messages call it."""
        return "the run" if self.one_off else f"pipeline {self.name!r}"

    @property
    def sources(self) -> dict[str, str]:
        """The full name of the dataset that each source node reads."""
        return {name: node.source for name, node in self.spec.nodes.items() if isinstance(node, SourceNode)}

    def sql_error(self, node: str, error: LakewardError, before: int = 0) -> SqlError:
        """Return an error in a node's SQL with the file and line in front, and the excerpt of the node's own text.

        Args:
            node: which one.
            error: its position is in the text that was run.
            before: so many characters of that text are ours, before the user's own.
        """
        written = self.spec.nodes[node]
        text = ""
        path: Path = ("nodes", node)
        if isinstance(written, TransformNode):
            text, path = written.transform, (*path, "transform")
        elif isinstance(written, SplitNode):
            text, path = written.split.where, (*path, "split", "where")
        position = error.fields.get("position")
        position = position - before if isinstance(position, int) and 0 <= position - before <= len(text) else None
        place = self.origin.place(path)
        first_line = place.text_line if place else 1
        line = first_line + line_and_column(text, position or 0)[0] - 1 if place else None
        where = f"{self.origin.file}:{line}: node {node}" if place else f"{self.origin.file}: node {node}"
        reason = str(error.fields.get("reason") or error.message)
        located = sql_error(reason, text, position, where=where, first_line=first_line, next_step=error.next_step)
        located.fields.update(
            {
                **error.fields,
                **located.fields,
                "file": self.origin.file,
                "line": line,
                "node": node,
                "pipeline": self.name,
            }
        )
        return located

    def to_json(self) -> dict[str, Any]:
        """Return the spec as it is stored; `from_json` reads it back."""
        return self.spec.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_json(cls, data: dict[str, Any], file: str) -> Pipeline:
        """Read a stored spec.

        Raises:
            SpecError: it was stored by a version that wrote another form.
        """
        return read_spec(data, Origin(file))


@cache
def strategy_classes() -> dict[str, type[Strategy]]:
    """Return the strategies that exist, by name."""
    return discover(strategies, Strategy)


@cache
def stage_classes() -> dict[str, type[Stage]]:
    """Return the kinds of nodes that are no SQL, by name."""
    return discover(stages, Stage)


def read_spec(data: dict[str, Any], origin: Origin) -> Pipeline:
    """Check a spec's data and return the pipeline.

    Raises:
        SpecError: with file and line, naming the key or value and the nearest right one.
    """
    known_keys(data, ("pipeline", "nodes", "outputs", "tags"), (), origin)
    for key in ("pipeline", "nodes", "outputs"):
        if key not in data:
            raise origin.error(f"{key!r} is missing", (), next_step=f"a pipeline needs {key!r}")
    nodes = mapping(data["nodes"], ("nodes",), origin, "nodes by name")
    outputs = data["outputs"]
    if not isinstance(outputs, list) or not outputs:
        raise origin.error("'outputs' is a list of at least one output", ("outputs",))
    spec = PipelineSpec(
        pipeline=_name(data["pipeline"], "pipeline", ("pipeline",), origin),
        nodes=_nodes(nodes, origin),
        outputs=[],
        tags=_tags(data.get("tags", []), origin),
    )
    readable = [made for name, node in spec.nodes.items() for made in names_of(name, node)]
    read = [_output(output, ("outputs", index), readable, origin) for index, output in enumerate(outputs)]
    spec = spec.model_copy(update={"outputs": read})
    _check_datasets(spec, origin)
    return Pipeline(spec, origin)


def _tags(tags: Any, origin: Origin) -> list[str]:
    if not isinstance(tags, list):
        raise origin.error(f"'tags' is {shown(tags)}, and should be a list, as in [daily]", ("tags",))
    for index, tag in enumerate(tags):
        _name(tag, "tag", ("tags", index), origin)
        if tag in tags[:index]:
            raise origin.error(f"tag {tag!r} stands twice", ("tags", index))
    return list(tags)


def _nodes(nodes: dict[str, Any], origin: Origin) -> dict[str, Node]:
    if not nodes:
        raise origin.error("'nodes' is empty", ("nodes",), next_step="a pipeline needs at least one source")
    twins: dict[str, str] = {}
    read: dict[str, Node] = {}
    for name, data in nodes.items():
        path: Path = ("nodes", name)
        _name(name, "node", path, origin, key=True)
        twin = twins.setdefault(name_key(name), name)
        if twin != name:
            raise origin.error(
                f"nodes {twin!r} and {name!r} differ only in case or Unicode form, and SQL takes them for one",
                path,
                key=True,
                next_step="rename one of them",
            )
        body = mapping(data, path, origin, f"a kind of node ({listed(kind.kind for kind in NODES)})")
        read[name] = _node(name, body, path, origin)
    _check_readable(read, origin)
    return read


def _check_readable(nodes: dict[str, Node], origin: Origin) -> None:
    """Refuse a name that two nodes make, and one that a join or split reads and nobody makes."""
    makers: dict[str, str] = {}
    for name, node in nodes.items():
        for made in names_of(name, node):
            if name_key(made) in makers:
                raise origin.error(
                    f"the name {made!r} is made twice, or twins of it are",
                    ("nodes", name),
                    key=True,
                    next_step="rename one",
                )
            makers[name_key(made)] = name
    readable = [made for name, node in nodes.items() for made in names_of(name, node)]
    for name, node in nodes.items():
        path: Path = ("nodes", name)
        if isinstance(node, JoinNode):
            for side in ("left", "right"):
                one_of(getattr(node.join, side), readable, "node", (*path, "join", side), origin)
            _check_join(node, (*path, "join"), origin)
        elif isinstance(node, SplitNode):
            one_of(node.split.input, readable, "node", (*path, "split", "input"), origin)
        elif isinstance(node, StageNode):
            for each, read in node.inputs.items():
                one_of(read, readable, "node", (*path, *node.place(each)), origin)


def _check_join(node: JoinNode, path: Path, origin: Origin) -> None:
    join = node.join
    if join.how == "cross" and join.on:
        raise origin.error("a cross join has no key", (*path, "on"), next_step="take `on` out, or another `how`")
    if join.how != "cross" and not join.on:
        raise origin.error(
            "a join needs the columns that it is on",
            path,
            next_step="write `on: [column]`; every row with every row must be asked for: `how: cross`",
        )
    if len(join.suffixes) != 2 or join.suffixes[0] == join.suffixes[1]:
        raise origin.error("'suffixes' are two texts that differ", (*path, "suffixes"))
    if join.left == join.right:
        raise origin.error(
            "a join of a node with itself", path, next_step="give it a second name: a transform `select * from …`"
        )


def _node(name: str, body: dict[str, Any], path: Path, origin: Origin) -> Node:
    kinds = [kind for kind in NODES if kind.kind in body]
    there = listed(kind.kind for kind in NODES)
    if len(kinds) > 1:
        raise origin.error(f"node {name!r} is {listed(kind.kind for kind in kinds)} at once", path, key=True)
    if not kinds:
        first = next(iter(body), None)
        raise origin.error(
            f"node {name!r} is of unknown kind {first!r}; there are {there}"
            if first
            else f"node {name!r} has no kind; there are {there}",
            (*path, first) if first else path,
            key=True,
            next_step=nearest(first, [kind.kind for kind in NODES]) if first else None,
        )
    known_keys(body, list(kinds[0].model_fields), path, origin)
    if issubclass(kinds[0], StageNode):
        return stage_classes()[kinds[0].kind].read(body, path, origin)
    node = checked_model(kinds[0], body, path, origin)
    if isinstance(node, SourceNode):
        return node.model_copy(update={"source": dataset_name(node.source, (*path, "source"), origin)})
    if isinstance(node, TransformNode) and not node.transform.strip():
        raise origin.error(f"node {name!r} has no SQL", (*path, "transform"))
    if isinstance(node, SplitNode) and not node.split.where.strip():
        raise origin.error(f"node {name!r} has no predicate", (*path, "split", "where"))
    assert isinstance(node, TransformNode | JoinNode | SplitNode)
    return node


def _output(data: Any, path: Path, nodes: Sequence[str], origin: Origin) -> OutputSpec:
    body = mapping(data, path, origin, "an output with `dataset`, `from` and `strategy`")
    known_keys(body, [field.alias or name for name, field in OutputSpec.model_fields.items()], path, origin)
    output = checked_model(OutputSpec, body, path, origin)
    assert isinstance(output, OutputSpec)
    one_of(output.from_, nodes, "node", (*path, "from"), origin)
    one_of(output.strategy, strategy_classes(), "strategy", (*path, "strategy"), origin)
    if output.arm is not None:
        one_of(output.arm, ARM_MODES, "arm", (*path, "arm"), origin)
    for index, column in enumerate(output.primary_key):
        if column in output.primary_key[:index]:
            raise origin.error(f"primary key column {column!r} is named twice", (*path, "primary_key", index))
    if strategy_classes()[output.strategy].needs_key and not output.primary_key:
        raise origin.error(f"strategy {output.strategy!r} needs a 'primary_key'", (*path, "strategy"))
    if output.require_incremental and not strategy_classes()[output.strategy].takes_delta:
        raise origin.error(
            f"strategy {output.strategy!r} has no deltas to require",
            (*path, "require_incremental"),
            next_step="take it out",
        )
    read_expectations(output.expectations, (*path, "expectations"), origin)
    return output.model_copy(update={"dataset": dataset_name(output.dataset, (*path, "dataset"), origin)})


def _check_datasets(spec: PipelineSpec, origin: Origin) -> None:
    """Refuse two outputs into one dataset, and an output that is also a source: its build would wait for itself."""
    sources = {name_key(node.source): name for name, node in spec.nodes.items() if isinstance(node, SourceNode)}
    written: dict[str, str] = {}
    for index, output in enumerate(spec.outputs):
        path: Path = ("outputs", index, "dataset")
        key = name_key(output.dataset)
        if key in written:
            raise origin.error(f"two outputs write the dataset {output.dataset}", path, next_step="keep one of them")
        if key in sources:
            raise origin.error(
                f"dataset {output.dataset} is an output and also the source {sources[key]!r}",
                path,
                next_step="write to another dataset: a pipeline reads the versions that were there before it",
            )
        written[key] = output.dataset


def _name(value: Any, what: str, path: Path, origin: Origin, *, key: bool = False) -> str:
    if not isinstance(value, str) or not value.strip():
        raise origin.error(f"the name of a {what} is {shown(value)}, and should be text", path, key=key)
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        raise origin.error(f"the name {value!r} of a {what} has a control character or a lone surrogate", path, key=key)
    if len(value.encode()) > MAX_NAME_BYTES:
        raise origin.error(f"the name {value[:40]!r}… of a {what} is longer than {MAX_NAME_BYTES} bytes", path, key=key)
    return value
