"""One query, run once into a dataset without a project: the same checks, engine, strategies and ledger as a build.

It is a pipeline that nobody applied. The ledger tells it from a build by the pipeline that it does not have, so that no
delta ever goes on from it; what it read is recorded all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakeward.compute.full_names import FullNames, read_full_names
from lakeward.compute.place import sql_error
from lakeward.compute.sql import analyse
from lakeward.control.routes import in_words
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import LakewardError, SqlError, UsageError
from lakeward.pipelines.build import Builder
from lakeward.pipelines.graph import read_graph
from lakeward.pipelines.origin import Origin
from lakeward.pipelines.outputs import check_existing
from lakeward.pipelines.spec import OutputSpec, Pipeline, read_spec, strategy_classes
from lakeward.storage.requests import BuildResult
from lakeward.types.schema import name_key

NAME = "run"
_QUERY, _SPLIT, _HOLDS, _REST = "query", "split", "rows for which it holds", "all other rows"
_UNDECLARED = "write its full name, as in FROM main.raw.orders, or name it: --source NAME=DATASET"


@dataclass(frozen=True)
class RunRequest:
    """What is to be run.

    Args:
        sql: one SELECT. It reads what `sources` names, and datasets by their full names.
        into: the dataset that gets its rows; made if it is missing.
        sources: datasets by the names that the query reads them by.
        strategy: how they are written, as in a pipeline; None: `replace`, if the dataset has no version yet.
        primary_key: of a dataset that is made; none: that of the one that is there.
        arm: where a dataset is made.
        allow_empty: lets `replace` and `mirror` leave it without rows.
        where: a predicate: only rows for which it is true go into `into`, and all others into `rest`.
        rest: the dataset that gets the others. Both become visible together.
    """

    sql: str
    into: str
    sources: Mapping[str, str] = field(default_factory=dict)
    strategy: str | None = None
    primary_key: Sequence[str] = ()
    arm: str | None = None
    allow_empty: bool = False
    where: str | None = None
    rest: str | None = None


@dataclass(frozen=True)
class RunPlan:
    """What a run would do, in order, and what is to be said of it."""

    actions: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {"actions": list(self.actions), "warnings": list(self.warnings)}


@dataclass
class OneOff:
    """One run.

    Args:
        request: what it is to do.
        tree: of the workspace.
        builder: runs it.
        applied: the pipelines whose datasets it could write.
    """

    request: RunRequest
    tree: Tree
    builder: Builder
    applied: Sequence[Pipeline]

    def run(self) -> BuildResult:
        """Write the outputs; they become visible together, or not at all.

        Raises:
            SqlError: the query is wrong, with the line and column in it.
            UsageError, SpecError, UnknownObject: something else was named wrong.
            LakewardError: what a build raises.
        """
        pipeline, text = self._pipeline()
        try:
            result = self.builder.once(pipeline)
        except SqlError as error:
            raise self._located(error, text) from None
        return replace(result, warnings=(*self._warnings(pipeline), *result.warnings))

    def plan(self) -> RunPlan:
        """Return what `run` would do, after the same checks. Reads no rows and changes nothing.

        Raises:
            LakewardError: as `run`.
        """
        pipeline, text = self._pipeline()
        try:
            graph = read_graph(pipeline)
            sources = {name: self.tree.dataset(name) for name in pipeline.sources.values()}
            versions = self.builder.pinned(pipeline, list(sources.values()))
            _, schemas = self.builder.described(graph, sources)
            expected = self.builder.guard.expected(graph, schemas)
        except SqlError as error:
            raise self._located(error, text) from None
        reads = ", ".join(f"{name} at version {versions[record.id]}" for name, record in sources.items())
        actions: list[str] = []
        for index, (output, schema) in enumerate(zip(pipeline.spec.outputs, schemas, strict=True)):
            there = self.tree.find(output.dataset)
            if there is None:
                self.builder.tree.check_unused(output.dataset)
                columns = ", ".join(f"{column.name} {column.type}" for column in schema.columns)
                where = in_words(self.builder.mode_of_new(pipeline, output))
                actions.append(f"create dataset {output.dataset} ({columns}) on {where}")
            else:
                check_existing(graph, index, schema, there.schema)
            verb = strategy_classes()[output.strategy]().verb(rebuild=False)
            what = f"{verb} {output.dataset}" + (f" from {reads}" if reads else "")
            judged = len(expected[index].expectations)
            actions.append(what + (f", if it is as expected ({judged})" if judged else ""))
        return RunPlan(tuple(actions), tuple(self._warnings(pipeline)))

    def _pipeline(self) -> tuple[Pipeline, FullNames]:
        """Return the run as a pipeline, and its query as it will run."""
        request = self.request
        if (request.where is None) != (request.rest is None):
            raise UsageError(
                "a split needs both: the predicate, and the dataset for all other rows",
                next_step="--where PREDICATE --rest DATASET",
            )
        text = read_full_names(request.sql, list(request.sources))
        sources = {**text.sources, **request.sources}
        try:
            analyse(text.text, list(sources), undeclared=_UNDECLARED)
        except SqlError as error:
            raise self._located(error, text) from None
        query = _free(_QUERY, sources)
        nodes: dict[str, Any] = {name: {"source": dataset} for name, dataset in sources.items()}
        nodes[query] = {"transform": text.text}
        froms = {request.into: query}
        if request.where is not None and request.rest is not None:
            holds, rest = _free(_HOLDS, sources), _free(_REST, sources)
            nodes[_free(_SPLIT, sources)] = {
                "split": {"input": query, "where": request.where, "true": holds, "false": rest}
            }
            if name_key(request.into) == name_key(request.rest):
                raise UsageError("both parts of the split go into one dataset", next_step="--rest ANOTHER_DATASET")
            froms = {request.into: holds, request.rest: rest}
        outputs = [self._output(dataset, node) for dataset, node in froms.items()]
        spec = read_spec({"pipeline": NAME, "nodes": nodes, "outputs": outputs}, Origin(NAME))
        return replace(spec, one_off=True), text

    def _output(self, dataset: str, node: str) -> dict[str, Any]:
        request, there = self.request, self.tree.find(dataset)
        key = list(request.primary_key) or (list(there.schema.primary_key) if there is not None else [])
        output: dict[str, Any] = {
            "dataset": dataset,
            "from": node,
            "strategy": request.strategy or self._new(dataset, there),
            "primary_key": key,
            "allow_empty": request.allow_empty,
        }
        if request.arm is not None:
            output["arm"] = request.arm
        expected: list[Any] = next(
            (each.expectations for _, each in self._writers() if _same(each.dataset, dataset)), []
        )
        return {**output, "expectations": expected} if expected else output

    def _new(self, dataset: str, there: DatasetRecord | None) -> str:
        if there is not None and there.head_version:
            raise UsageError(
                f"dataset {there.name} has rows, and nothing says what becomes of them",
                safe="it is unchanged",
                next_step=f"--strategy, one of {', '.join(strategy_classes())}",
                dataset=dataset,
            )
        return "replace"

    def _writers(self) -> list[tuple[Pipeline, OutputSpec]]:
        return [(pipeline, output) for pipeline in self.applied for output in pipeline.spec.outputs]

    def _warnings(self, pipeline: Pipeline) -> list[str]:
        written = [output.dataset for output in pipeline.spec.outputs]
        return [
            f"{output.dataset} is written by pipeline {writer.name!r}, whose next build does not know of this run"
            for writer, output in self._writers()
            if any(_same(output.dataset, dataset) for dataset in written)
        ]

    def _located(self, error: SqlError, text: FullNames) -> LakewardError:
        """Return the error with its place in the text that the user gave: no file and no node has it."""
        position, where, sql = error.fields.get("position"), "", self.request.sql
        reason = str(error.fields.get("reason") or error.message)
        if self.request.where is not None and str(error.fields.get("node", "")).startswith(_SPLIT):
            sql, where = self.request.where, "--where"
        elif isinstance(position, int):
            position = text.place(position)
        located = sql_error(
            reason, sql, position if isinstance(position, int) else None, where=where, next_step=error.next_step
        )
        kept = ("function", "name", "column_number")
        located.fields.update({key: value for key, value in error.fields.items() if key in kept})
        return located


def _same(one: str, other: str) -> bool:
    return name_key(one) == name_key(other)


def _free(name: str, taken: Mapping[str, str]) -> str:
    known = {each.casefold() for each in taken}
    while name in known:
        name += "_"
    return name
