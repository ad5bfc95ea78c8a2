"""Fits what is expected to the columns of an output, when a plan is made and before a build: no data is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakeward.compute.engine import Engine
from lakeward.control.names import DatasetName
from lakeward.errors import LakewardError, SpecError, SqlError, UnknownObject
from lakeward.pipelines.expectation import QUARANTINE, ROWS, Expectation, RowExpectation, Scope, located_sql
from lakeward.pipelines.expectation_spec import place_of, quarantine_name, read_expectations
from lakeward.pipelines.graph import Graph
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.problems import Problems
from lakeward.types.schema import Schema, name_key

MAX_NAME_BYTES = 255
_SHORTER = "shorten the name of the dataset"
_THERE = "name a dataset that is there"

SchemaOf = Callable[[str], Schema]
"""Returns the columns of a dataset that is not written at the same time, or raises UnknownObject."""


@dataclass(frozen=True)
class Expected:
    """What one output is expected to be.

    Args:
        dataset: the output.
        expectations: in the order of the spec.
        scope: what their SQL is about.
        warnings: what is likely to be meant otherwise.
    """

    dataset: str
    expectations: tuple[Expectation, ...]
    scope: Scope
    warnings: tuple[str, ...] = ()

    @property
    def parted(self) -> dict[int, RowExpectation]:
        """Those by which bad rows are taken out, by their position."""
        return {
            position: each
            for position, each in enumerate(self.expectations)
            if each.on_fail == QUARANTINE and isinstance(each, RowExpectation)
        }


def check_expectations(graph: Graph, schemas: Sequence[Schema], engine: Engine, schema_of: SchemaOf) -> list[Expected]:
    """Return what each output of a pipeline is expected to be, checked against its columns.

    Args:
        graph: the pipeline's.
        schemas: of its outputs.
        engine: the one that will run the checks; describes them.
        schema_of: finds the columns of other datasets.

    Raises:
        SpecError, SqlError: with file and line.
    """
    own = {
        name_key(output.dataset): schema for output, schema in zip(graph.pipeline.spec.outputs, schemas, strict=True)
    }
    problems = Problems()
    found: list[Expected] = []
    for index, schema in enumerate(schemas):
        with problems.collect():
            spec = graph.pipeline.spec.outputs[index]
            path: Path = ("outputs", index, "expectations")
            declared = Declared(spec.dataset, spec.expectations, path, graph.pipeline.origin, "output")
            check = _Check(declared, schema_of, engine, own, graph.order)
            expected = check.expected(schema)
            if expected.parted:
                check.check_quarantine([*own, *graph.pipeline.sources.values()])
            found.append(expected)
    problems.raise_all()
    return found


@dataclass(frozen=True)
class Declared:
    """What was written of one dataset.

    Args:
        dataset: its name.
        expectations: the list, as it was written.
        path, origin: where that is.
        what: it is, for errors.
    """

    dataset: str
    expectations: Sequence[Any]
    path: Path
    origin: Origin
    what: str = "dataset"


def check_declared(declared: Declared, schema: Schema, schema_of: SchemaOf, engine: Engine | None = None) -> Expected:
    """Return what a dataset itself is expected to be, checked against its columns.

    Args:
        declared: what was written.
        schema: of the dataset.
        schema_of: finds the columns of other datasets.
        engine: describes the SQL in it; None: that was done.

    Raises:
        SpecError, SqlError: with the place.
    """
    expected = _Check(declared, schema_of, engine).expected(schema)
    for position, each in enumerate(expected.expectations):
        if each.on_fail == QUARANTINE:
            raise declared.origin.error(
                "a dataset's own expectations can't take rows out: its writers have nothing to put them into",
                (*place_of(each, position, declared.path), "on_fail"),
                next_step="write `fail` or `warn`; the output of a pipeline takes `on_fail: quarantine`",
            )
    return expected


class _Check:
    """Checks the expectations of one dataset."""

    def __init__(
        self,
        declared: Declared,
        schema_of: SchemaOf,
        engine: Engine | None,
        own: Mapping[str, Schema] | None = None,
        taken: Collection[str] = (),
    ) -> None:
        self.declared = declared
        self.origin = declared.origin
        self.schema_of = schema_of
        self.engine = engine
        self.own = own or {}
        self.taken = taken

    def expected(self, schema: Schema) -> Expected:
        path = self.declared.path
        expectations = read_expectations(self.declared.expectations, path, self.origin)
        names = dict.fromkeys(each.reads for each in expectations if each.reads is not None)
        taken = {name.casefold() for name in (*self.taken, ROWS)}
        others = {name: _free(f"other{number}", taken) for number, name in enumerate(names)}
        scope = Scope(schema, others, {})
        warnings: list[str] = []
        problems = Problems()
        for position, each in enumerate(expectations):
            place = place_of(each, position, path)
            with problems.collect():
                scope = self.checked(each, scope, place)
            warnings += [f"{self.origin.at(place)}: {warning}" for warning in each.warnings()]
        problems.raise_all()
        return Expected(self.declared.dataset, tuple(expectations), scope, tuple(warnings))

    def checked(self, expectation: Expectation, scope: Scope, place: Path) -> Scope:
        """Check one expectation; returns the scope with the columns of the other dataset that it reads."""
        if expectation.reads is not None:
            found = self.other(expectation.reads, expectation, place)
            scope = Scope(scope.schema, scope.others, {**scope.schemas, expectation.reads: found})
        if expectation.name == "primary_key" and not scope.schema.primary_key:
            hint = "write `primary_key: [column]`" if self.own else "make a dataset with `--key COLUMN`"
            raise self.refuse(f"the {self.declared.what} has no 'primary_key' to expect", place, hint)
        expectation.check_columns(scope, place, self.refuse)
        for key, text in expectation.texts().items():
            self.check_text(expectation, text, scope, (*place, key))
        return scope

    def check_quarantine(self, used: Collection[str]) -> None:
        """Refuse a name that is too long, and one that the pipeline uses otherwise."""
        dataset = self.declared.dataset
        path: Path = (*self.declared.path[:-1], "dataset")
        name = quarantine_name(dataset)
        if len(DatasetName.parse(name).dataset.encode()) > MAX_NAME_BYTES:
            raise self.refuse(f"the quarantine's name, {name}, is longer than {MAX_NAME_BYTES} bytes", path, _SHORTER)
        if name_key(name) in {name_key(each) for each in used}:
            what = "it reads or writes it otherwise: rename that dataset"
            raise self.refuse(f"{name} is also where bad rows of {dataset} go", path, what)

    def refuse(self, reason: str, path: Path, next_step: str) -> SpecError:
        return self.origin.error(reason, path, next_step=next_step)

    def other(self, name: str, expectation: Expectation, path: Path) -> Schema:
        found = self.own.get(name_key(name))
        if found is not None:
            if expectation.on_fail == QUARANTINE:
                raise self.refuse(
                    f"rows can't be taken out by what {name} holds: the same build writes it",
                    (*path, "on_fail"),
                    "write `fail` or `warn`, or two pipelines",
                )
            return found
        try:
            return self.schema_of(name)
        except UnknownObject as error:
            raise self.refuse(error.message, (*path, "dataset"), error.next_step or _THERE) from None

    def check_text(self, expectation: Expectation, text: str, scope: Scope, path: Path) -> None:
        """Ask the engine, whose parser may read the text otherwise than ours; beside a count, it has to aggregate."""
        if self.engine is None:
            return
        before = "SELECT (\n" if isinstance(expectation, RowExpectation) else "SELECT count(*) AS n, (\n"
        try:
            types = self.engine.describe(f"{before}{text}\n) AS value FROM {ROWS}", {ROWS: scope.schema})
            if isinstance(expectation, RowExpectation):
                # In a WHERE stands what gives one value for each row: no aggregate, and nothing that makes rows of one.
                before = f"SELECT true AS value FROM {ROWS} WHERE (\n"
                self.engine.describe(f"{before}{text}\n)", {ROWS: scope.schema})
        except SqlError as error:
            raise located_sql(error, text, path, self.origin, len(before)) from None
        except LakewardError as error:
            raise self.refuse(error.message, path, error.next_step or "write it otherwise") from None
        wrong = expectation.check_type(types["value"])
        if wrong is not None:
            raise self.refuse(f"{' '.join(text.split())} {wrong}", path, "cast it, or compare it with something")


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
