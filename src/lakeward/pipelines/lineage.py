"""Which columns a column is made from, across pipelines: read from the applied queries whenever it is asked.

Nothing of it is stored, so it is never older than the pipelines are. A column comes from those whose values its
expression takes. What only decides which rows there are (`where`, `join … on`, `group by`) is not among them.

Columns are followed through all datasets, and those that whoever asked may not see are hidden then: that there is
something is told, not what, nor how many. So what is behind them, and may be seen, is not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from lakeward.access.guard import itself, principal
from lakeward.compute.engine import Engine
from lakeward.compute.sql import DIALECT, parsed
from lakeward.control.tree import DatasetRecord
from lakeward.errors import LakewardError, UnknownObject
from lakeward.pipelines.compile import Compiled, CompiledStage, Compiler
from lakeward.pipelines.graph import Graph, read_graph
from lakeward.pipelines.models.registered import ModelCatalog
from lakeward.pipelines.spec import OutputSpec, Pipeline
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import Schema, name_key

NOT_TOLD = "can't be told from its query"
OPAQUE = "made by Python: of any of these"
UNSEEN = "a dataset that you may not see"


@dataclass(frozen=True)
class From:
    """What a column is made from.

    Args:
        pairs: (input, column), each once.
        opaque: it may be made from fewer: these are all that a function got.
    """

    pairs: tuple[tuple[str, str], ...]
    opaque: bool = False

    @classmethod
    def all_of(cls, parts: Sequence[From | None], *, opaque: bool = False) -> From | None:
        """Return what is made from several; None, if of one of them it can't be told."""
        told = [part for part in parts if part is not None]
        if len(told) < len(parts):
            return None
        pairs = tuple(dict.fromkeys(pair for part in told for pair in part.pairs))
        return cls(pairs, opaque or any(part.opaque for part in told))


@dataclass(frozen=True)
class ColumnLineage:
    """A column, and what it is made from or what is made from it.

    Args:
        dataset, column: which one; `UNSEEN` and nothing, where it is hidden.
        pipeline: upstream: the one that writes it, if any; downstream: the one that makes it from the column above.
        links: the next columns in the direction that was asked for.
        note: what else there is to say: that it comes from no column, or can't be told.
        hidden: it stands for all that is made so, and that whoever asked may not see.
    """

    dataset: str
    column: str
    pipeline: str | None = None
    links: tuple[ColumnLineage, ...] = ()
    note: str | None = None
    hidden: bool = False

    def __str__(self) -> str:
        return self.dataset if self.hidden else f"{self.dataset}.{self.column}"

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        named = {"dataset": None, "column": None} if self.hidden else {}
        return {**vars(self), **named, "links": [each.to_json() for each in self.links]}


@dataclass(frozen=True)
class _Made:
    """How an output's columns are made. `unknown` says why that of none can be told."""

    pipeline: str
    origins: Mapping[str, From | None] = field(default_factory=dict)
    unknown: str | None = None


class Lineage:
    """Follows columns through the applied pipelines, for whoever acts when it is made.

    Args:
        pipelines: the applied ones.
        engine: tells the columns of joins.
        models: where models are looked up.
        find: finds a dataset, if there is one that whoever acts may see.
    """

    def __init__(
        self,
        pipelines: Sequence[Pipeline],
        engine: Engine,
        models: ModelCatalog,
        find: Callable[[str], DatasetRecord | None],
    ) -> None:
        self._engine = engine
        self._models = models
        self._find = find
        self._who = principal()
        self._writers = {name_key(output.dataset): (each, output) for each in pipelines for output in each.spec.outputs}
        self._made: dict[str, _Made] = {}
        self._nodes: dict[tuple[bool, str, str], ColumnLineage] = {}
        self._seen: dict[str, bool] = {}

    def writes(self, dataset: str) -> bool:
        """Say whether an applied pipeline writes a dataset."""
        return name_key(dataset) in self._writers

    def columns(self, dataset: str) -> list[str]:
        """Return the columns of a dataset, also of one that is yet to be built."""
        schema = self._schema_of(dataset)
        return list(schema.names) if schema is not None else list(self._how(dataset).origins)

    def made_from(self, dataset: str) -> Mapping[str, From | None]:
        """Return which columns of its pipeline's sources each column is made from; None: of that one it can't be told.

        Where a dataset is written by no pipeline, or nothing can be told of its query, it is empty.
        """
        return self._how(dataset).origins if self.writes(dataset) else {}

    def up(self, dataset: str, column: str) -> ColumnLineage:
        """Return what a column is made from, down to datasets that no pipeline writes."""
        return self._shown(self._from(dataset, column))

    def down(self, dataset: str, column: str) -> ColumnLineage:
        """Return what is made from a column."""
        return self._shown(self._into(dataset, column))

    def _shown(self, node: ColumnLineage) -> ColumnLineage:
        """Hide what may not be seen of a tree whose root may be."""
        links = tuple(dict.fromkeys(each for link in node.links for each in self._linked(link)))
        there = tuple(each for each in links if not each.hidden)
        behind = tuple(dict.fromkeys(each for link in links if link.hidden for each in link.links))
        hidden = (ColumnLineage(UNSEEN, "", links=behind, hidden=True),) if len(there) < len(links) else ()
        return replace(node, links=(*there, *hidden))

    def _linked(self, node: ColumnLineage) -> tuple[ColumnLineage, ...]:
        shown = self._shown(node)
        if self._sees(node.dataset):
            return (shown,)
        # Several in a row are one.
        behind = tuple(each for link in shown.links for each in (link.links if link.hidden else (link,)))
        return (ColumnLineage(UNSEEN, "", links=behind, hidden=True),)

    def _sees(self, dataset: str) -> bool:
        """Say whether they may see a dataset; of one that is yet to be, they need a role in the whole workspace."""
        key = name_key(dataset)
        if key not in self._seen:
            with itself():
                record = self._find(dataset)
            self._seen[key] = self._who.role_in(record.slugs if record is not None else ()) is not None
        return self._seen[key]

    def _schema_of(self, dataset: str) -> Schema | None:
        with itself():
            record = self._find(dataset)
        return record.schema if record is not None else None

    def _from(self, dataset: str, column: str) -> ColumnLineage:
        key = (True, name_key(dataset), name_key(column))
        if key not in self._nodes:
            self._nodes[key] = self._up(dataset, column)
        return self._nodes[key]

    def _into(self, dataset: str, column: str, pipeline: str | None = None) -> ColumnLineage:
        """Return what is made from a column; `pipeline`: the one that makes it, where it was come to from above."""
        key = (False, name_key(dataset), name_key(column))
        if key not in self._nodes:
            links: list[ColumnLineage] = []
            notes: list[str] = []
            for written, (other, output) in self._writers.items():
                if not any(_same(dataset, source) for source in other.sources.values()):
                    continue
                made = self._how(output.dataset)
                untold = [each for each, origins in made.origins.items() if origins is None]
                if (made.unknown is not None or untold) and self._sees(output.dataset):
                    which = f"{output.dataset}{'.' if untold else ''}{', '.join(untold)}"
                    notes.append(f"whether {which} is made from it {made.unknown or NOT_TOLD}")
                for each, origins in made.origins.items():
                    if origins is not None and any(
                        _same(dataset, name) and _same(column, from_) for name, from_ in origins.pairs
                    ):
                        links.append(self._into(self._writers[written][1].dataset, each, other.name))
            self._nodes[key] = ColumnLineage(dataset, column, pipeline, tuple(links), "; ".join(notes) or None)
        return self._nodes[key]

    def _up(self, dataset: str, column: str) -> ColumnLineage:
        if not self.writes(dataset):
            return ColumnLineage(dataset, column)
        made = self._how(dataset)
        if made.unknown is not None:
            return ColumnLineage(dataset, column, made.pipeline, (), made.unknown)
        name = next((each for each in made.origins if _same(each, column)), None)
        if name is None:
            return ColumnLineage(dataset, column, made.pipeline, (), "the applied pipeline does not make it")
        origins = made.origins[name]
        if origins is None:
            return ColumnLineage(dataset, column, made.pipeline, (), NOT_TOLD)
        links = tuple(self._from(*pair) for pair in origins.pairs)
        note = (OPAQUE if origins.opaque else None) if links else "from no column"
        return ColumnLineage(dataset, column, made.pipeline, links, note)

    def _how(self, dataset: str) -> _Made:
        key = name_key(dataset)
        if key not in self._made:
            pipeline, output = self._writers[key]
            try:
                with itself():
                    self._made[key] = _Made(pipeline.name, self._origins(pipeline, output))
            except (LakewardError, SqlglotError) as error:
                reason = error.message if isinstance(error, LakewardError) else str(error)
                first = reason.partition("\n")[0]
                # It may name any of them.
                why = f": {first}" if all(self._sees(each) for each in pipeline.sources.values()) else ""
                self._made[key] = _Made(pipeline.name, unknown=f"{NOT_TOLD}{why}")
        return self._made[key]

    def _origins(self, pipeline: Pipeline, output: OutputSpec) -> dict[str, From | None]:
        graph = read_graph(pipeline)
        schemas: dict[str, Schema] = {}
        for name in pipeline.sources.values():
            schema = self._schema_of(name) or self._yet_to_be(name)
            if schema is not None:
                schemas[name] = schema
        missing = next((name for name in graph.sources(output).values() if name not in schemas), None)
        if missing is not None:
            raise UnknownObject(
                f"there is no dataset {missing}",
                next_step="`lakeward dataset list` shows those there are",
                dataset=missing,
            )
        compiler = Compiler(graph, self._engine, schemas, self._models)
        names = list(compiler.describe(output))
        found = _Tracer(graph, schemas).trace(compiler.compile(output))
        datasets = pipeline.sources
        origins = {name: found.get(name.casefold()) for name in names}
        return {
            name: each and From(tuple(sorted({(datasets[node], column) for node, column in each.pairs})), each.opaque)
            for name, each in origins.items()
        }

    def _yet_to_be(self, dataset: str) -> Schema | None:
        """Return the columns that a dataset is to have; None: nobody writes it."""
        if not self.writes(dataset):
            return None
        pipeline, output = self._writers[name_key(dataset)]
        schemas = {name: self._schema_of(name) or self._yet_to_be(name) for name in pipeline.sources.values()}
        known = {name: schema for name, schema in schemas.items() if schema is not None}
        if len(known) < len(schemas):
            return None
        compiler = Compiler(read_graph(pipeline), self._engine, known, self._models)
        return Schema.declare(compiler.describe(output), output.primary_key, output.dataset)


@dataclass(frozen=True)
class _Tracer:
    """Follows the columns of one output to its source nodes.

    Args:
        graph: the pipeline's.
        schemas: of the datasets that it reads.
    """

    graph: Graph
    schemas: Mapping[str, Schema]

    def trace(self, compiled: Compiled) -> dict[str, From | None]:
        """Return the source nodes' columns that each column of a query is made from, by its case-folded name.

        Raises:
            SqlglotError: its text is beyond what is understood of columns.
        """
        sources = self.graph.pipeline.sources
        inputs = {name: list(self.schemas[sources[name]].names) for name in compiled.reads}
        inputs |= {name: list(stage.schema.names) for name, stage in compiled.stages.items()}
        # Inputs get names that need no quotes: a node may be called anything.
        called = {name: f"lakeward_input_{number}" for number, name in enumerate(inputs)}
        inner = ", ".join(f"{duckdb_name(name)} AS (SELECT * FROM {called[name]})" for name in inputs)
        tree = parsed(_with(inner, compiled))
        if any(operation.args.get("by_name") for operation in tree.find_all(exp.SetOperation)):
            raise SqlglotError("UNION BY NAME")
        tables = {called[name]: dict.fromkeys(columns, "text") for name, columns in inputs.items()}
        nodes = lineage(None, tree, tables, dialect=DIALECT, copy=False)
        assert isinstance(nodes, dict)
        below = {name: self._stage(stage) for name, stage in compiled.stages.items()}
        original = {called[name]: name for name in inputs}
        found: dict[str, From | None] = {}
        for column, node in nodes.items():
            leaves = _leaves(node, original)
            parts = [below[name].get(each) if name in below else From(((name, each),)) for name, each in leaves or ()]
            found[column.casefold()] = From.all_of(parts) if leaves is not None else None
        return {name: self._spelled(each) for name, each in found.items()}

    def _spelled(self, origins: From | None) -> From | None:
        """Return columns as their datasets spell them: the analysis folds their case."""
        if origins is None:
            return None
        sources = self.graph.pipeline.sources
        spelled = {(node, name.casefold()): name for node, dataset in sources.items() for name in self.names(dataset)}
        return replace(origins, pairs=tuple((node, spelled[node, name.casefold()]) for node, name in origins.pairs))

    def names(self, dataset: str) -> Sequence[str]:
        """Return the columns of a dataset; none, if no output needs it."""
        return self.schemas[dataset].names if dataset in self.schemas else ()

    def _stage(self, compiled: CompiledStage) -> dict[str, From | None]:
        """Return what a stage's columns are made from."""
        before = {name: self.trace(each) for name, each in compiled.inputs.items()}
        found: dict[str, From | None] = {}
        for column in compiled.schema.names:
            parts = [before[name].get(each.casefold()) for name, each in compiled.stage.made_from(column)]
            found[column.casefold()] = From.all_of(parts, opaque=compiled.stage.opaque)
        return found


def _with(inputs: str, compiled: Compiled) -> str:
    """Return a query's text with its inputs as common table expressions before its own."""
    if not inputs:
        return compiled.sql
    rest = compiled.sql.removeprefix("WITH ")
    return f"WITH {inputs}{', ' if rest != compiled.sql else ' '}{rest}"


def _leaves(node: Node, original: Mapping[str, str]) -> list[tuple[str, str]] | None:
    """Return the inputs' columns at the ends of a column's lineage; None: one of the ends is of no input."""
    found: list[tuple[str, str]] = []
    for each in node.walk():
        if each.downstream:
            continue
        ends = each.expression
        if isinstance(ends, exp.Table) and ends.name in original:
            column = sqlglot.parse_one(each.name, dialect=DIALECT)
            found.append((original[ends.name], column.name.casefold()))
        elif ends.find(exp.Column, exp.Columns) is not None or each.name == "*":
            return None
    return found


def _same(one: str, other: str) -> bool:
    return name_key(one) == name_key(other)
