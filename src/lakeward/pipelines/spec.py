"""What a pipeline file says, checked: known keys, known kinds, names that can be told apart. Nothing is looked up here.

The YAML form is pinned by the design: later kinds of node and strategies add to it and rename nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pydantic import Field, SerializeAsAny

from lakeward.compute.place import line_and_column, sql_error
from lakeward.control.routes import ARM_MODES
from lakeward.discovery import discover
from lakeward.errors import LakewardError, SqlError
from lakeward.pipelines import strategies
from lakeward.pipelines.cron import check_schedule
from lakeward.pipelines.expectation_spec import read_expectations
from lakeward.pipelines.node_spec import read_nodes
from lakeward.pipelines.nodes import Node, SourceNode, SpecModel, SplitNode, TransformNode
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.problems import Problems
from lakeward.pipelines.spec_checks import (
    check_name,
    checked_model,
    corrected,
    dataset_name,
    keys_of,
    listed,
    mapping,
    one_of,
    shown,
)
from lakeward.pipelines.strategy import Strategy
from lakeward.types.schema import name_key

_EVERY_MORNING = '"0 6 * * *"'


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
    """A pipeline as it is stored when it is applied.

    `schedule` says when it is to be built, as cron has it, or `on_change`; nothing in it changes what a build gives.
    `code` has the files of the project that a build runs, by their paths; nobody writes it.
    """

    pipeline: str
    nodes: dict[str, SerializeAsAny[Node]]
    outputs: list[OutputSpec]
    tags: list[str] = Field(default_factory=list)
    schedule: str | None = None
    code: dict[str, str] = Field(default_factory=dict)


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
        absent = {key for key in ("schedule", "code") if not getattr(self.spec, key)}
        return self.spec.model_dump(mode="json", by_alias=True, exclude=absent)

    @classmethod
    def from_json(cls, data: dict[str, Any], file: str) -> Pipeline:
        """Read a stored spec.

        Raises:
            SpecError: it was stored by a version that wrote another form.
        """
        written = {key: value for key, value in data.items() if key != "code"}
        return read_spec(written, Origin(file)).with_code(data.get("code", {}))

    def with_code(self, code: Mapping[str, str]) -> Pipeline:
        """Return the pipeline with the files that its Python nodes run."""
        return replace(self, spec=self.spec.model_copy(update={"code": dict(code)}))


@cache
def strategy_classes() -> dict[str, type[Strategy]]:
    """Return the strategies that exist, by name."""
    return discover(strategies, Strategy)


def read_spec(data: dict[str, Any], origin: Origin, problems: Problems | None = None) -> Pipeline:
    """Check a spec's data and return the pipeline.

    Args:
        data: the spec's.
        origin: where it was written.
        problems: what is known to be wrong with its text already.

    Raises:
        SpecError: with everything that is wrong: file and line, the key or value, the nearest right one.
    """
    problems = Problems() if problems is None else problems
    data, origin = corrected(data, ("pipeline", "nodes", "outputs", "tags", "schedule"), (), origin, problems)
    for key in ("pipeline", "nodes", "outputs"):
        if key not in data:
            problems.add(origin.missing((key,)))
    if "pipeline" in data:
        with problems.collect():
            check_name(data["pipeline"], "pipeline", ("pipeline",), origin)
    tags = data.get("tags", [])
    with problems.collect():
        _check_tags(tags, origin)
    schedule = None
    if "schedule" in data:
        with problems.collect():
            schedule = _schedule(data["schedule"], origin)
    nodes, readable = read_nodes(data["nodes"], origin, problems) if "nodes" in data else ({}, None)
    outputs = _outputs(data["outputs"], readable, origin, problems) if "outputs" in data else {}
    _check_datasets(nodes, outputs, origin, problems)
    problems.raise_all()
    spec = PipelineSpec(
        pipeline=data["pipeline"], nodes=nodes, outputs=list(outputs.values()), tags=list(tags), schedule=schedule
    )
    return Pipeline(spec, origin)


def _check_tags(tags: Any, origin: Origin) -> None:
    if not isinstance(tags, list):
        raise origin.error(
            f"'tags' is {shown(tags)}, and should be a list, as in [daily]",
            ("tags",),
            next_step=f"write {origin.written(('tags',), '[daily]')}",
        )
    for index, tag in enumerate(tags):
        check_name(tag, "tag", ("tags", index), origin)
        if tag in tags[:index]:
            raise origin.error(f"tag {tag!r} stands twice", ("tags", index), next_step="keep one of them")


def _schedule(text: Any, origin: Origin) -> str:
    """Return a schedule in its one form."""
    try:
        if not isinstance(text, str):
            raise ValueError("it should be text")
        return check_schedule(text)
    except ValueError as error:
        raise origin.error(
            f"'schedule' is {shown(text)}, which is no time of cron: {error}",
            ("schedule",),
            next_step=f"write {origin.written(('schedule',), _EVERY_MORNING)}: minute, hour, day, month, weekday; "
            "or on_change",
        ) from None


def _outputs(data: Any, readable: Sequence[str] | None, origin: Origin, problems: Problems) -> dict[int, OutputSpec]:
    """Return the outputs that are right, by their place in the list.

    Args:
        data: as it is written.
        readable: the names that an output may be made from; None: these can't be told.
        origin, problems: see `read_spec`.
    """
    if not isinstance(data, list) or not data:
        hint = "write `- dataset: …` below it, with `from` and `strategy`"
        problems.add(origin.error("'outputs' is a list of at least one output", ("outputs",), next_step=hint))
        return {}
    outputs: dict[int, OutputSpec] = {}
    for index, body in enumerate(data):
        with problems.collect():
            outputs[index] = _output(body, ("outputs", index), readable, origin)
    return outputs


def _output(data: Any, path: Path, readable: Sequence[str] | None, origin: Origin) -> OutputSpec:
    body = mapping(data, path, origin, "an output with `dataset`, `from` and `strategy`")
    problems = Problems()
    body, origin = corrected(body, keys_of(OutputSpec), path, origin, problems)
    with problems.collect():
        checked_model(OutputSpec, body, path, origin)
    names = {"from": readable, "strategy": strategy_classes(), "arm": ARM_MODES}
    for key, there in names.items():
        if there is not None and isinstance(body.get(key), str):
            with problems.collect():
                one_of(body[key], there, "node" if key == "from" else key, (*path, key), origin)
    with problems.collect():
        _check_strategy(body, path, origin)
    with problems.collect():
        _check_key(body.get("primary_key"), (*path, "primary_key"), origin)
    if isinstance(body.get("expectations"), list):
        with problems.collect():
            read_expectations(body["expectations"], (*path, "expectations"), origin)
    if isinstance(body.get("dataset"), str):
        with problems.collect():
            body["dataset"] = dataset_name(body["dataset"], (*path, "dataset"), origin)
    problems.raise_all()
    return OutputSpec.model_validate(body)


def _check_key(columns: Any, path: Path, origin: Origin) -> None:
    for index, column in enumerate(columns if isinstance(columns, list) else ()):
        if column in columns[:index]:
            raise origin.error(
                f"primary key column {column!r} is named twice", (*path, index), next_step="keep one of them"
            )


def _check_strategy(output: dict[str, Any], path: Path, origin: Origin) -> None:
    """Refuse what the strategy of an output does not go with. Its other values may still be wrong."""
    name = output.get("strategy")
    strategy = strategy_classes().get(name) if isinstance(name, str) else None
    if strategy is None:
        return
    if strategy.needs_key and not output.get("primary_key"):
        raise origin.error(
            f"strategy {name!r} needs a 'primary_key'",
            (*path, "strategy"),
            next_step=f"add {origin.written((*path, 'primary_key'), '[column]')}, the columns that identify a row",
        )
    if output.get("require_incremental") is True and not strategy.takes_delta:
        taking = listed(name for name, each in strategy_classes().items() if each.takes_delta)
        raise origin.error(
            f"strategy {name!r} has no deltas to require",
            (*path, "require_incremental"),
            next_step=f"take it out, or write another strategy: {taking}",
        )


def _check_datasets(nodes: dict[str, Node], outputs: dict[int, OutputSpec], origin: Origin, problems: Problems) -> None:
    """Refuse two outputs into one dataset, and an output that is also a source: its build would wait for itself."""
    sources = {name_key(node.source): name for name, node in nodes.items() if isinstance(node, SourceNode)}
    written: set[str] = set()
    for index, output in outputs.items():
        path: Path = ("outputs", index, "dataset")
        key = name_key(output.dataset)
        if key in written:
            hint = "keep one of them"
            problems.add(origin.error(f"two outputs write the dataset {output.dataset}", path, next_step=hint))
        if key in sources:
            problems.add(
                origin.error(
                    f"dataset {output.dataset} is an output and also the source {sources[key]!r}",
                    path,
                    next_step="write to another dataset: a pipeline reads the versions that were there before it",
                )
            )
        written.add(key)
