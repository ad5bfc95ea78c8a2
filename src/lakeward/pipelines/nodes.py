"""The kinds of node. To add one, add its model here: it says what it reads, which names it makes, and their SQL.

One that is no SQL is a `StageNode`, and has a file in `stages/` that says how it runs.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator
from pydantic_core import PydanticCustomError

from lakeward.types.quoting import duckdb_name


class SpecModel(BaseModel):
    """Base of everything in a spec: unknown keys are refused, values are what they look like, nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class SourceNode(SpecModel):
    """Reads a dataset.

    `window: delta`, the default, lets a build read only the rows that are new. `full` reads all of it every time, as a
    table to look things up in; that it changed makes nobody compute anew what was computed with it before.
    """

    kind: ClassVar[str] = "source"
    source: str
    window: Literal["delta", "full"] = "delta"


class TransformNode(SpecModel):
    """One SQL query over other nodes, read by their names."""

    kind: ClassVar[str] = "transform"
    transform: str


class Join(SpecModel):
    """What a join joins. Columns of the key stand once; of others that both have, `suffixes` tell them apart."""

    left: str
    right: str
    on: list[str] = Field(default_factory=list)
    how: Literal["inner", "left", "right", "full", "semi", "anti", "cross"] = "inner"
    suffixes: list[str] = Field(default_factory=lambda: ["", "_right"])


class JoinNode(SpecModel):
    """Joins two nodes on columns of one name. Null equals nothing. Every row with every row must be asked for."""

    kind: ClassVar[str] = "join"
    join: Join

    def sql(self, columns: Mapping[str, Sequence[str]]) -> str:
        """Return the join's query.

        Args:
            columns: of the nodes that it reads, by name.
        """
        left, right = columns[self.join.left], columns[self.join.right]
        tables = f"{duckdb_name(self.join.left)} AS l", f"{duckdb_name(self.join.right)} AS r"
        same = " AND ".join(f"l.{duckdb_name(name)} = r.{duckdb_name(name)}" for name in self.join.on)
        on = f" ON {same}" if self.join.how != "cross" else ""
        if self.join.how in ("semi", "anti"):
            return f"SELECT l.* FROM {tables[0]} {self.join.how.upper()} JOIN {tables[1]}{on}"
        key = {"right": "r.{0}", "full": "coalesce(l.{0}, r.{0})"}.get(self.join.how, "l.{0}")
        shared = {name.casefold() for name in left} & {name.casefold() for name in right}
        select = []
        for side, names, suffix in zip("lr", (left, right), self.join.suffixes, strict=True):
            for name in names:
                quoted = duckdb_name(name)
                if name in self.join.on:
                    select += [f"{key.format(quoted)} AS {quoted}"] if side == "l" else []
                else:
                    as_ = duckdb_name(name + suffix) if name.casefold() in shared else quoted
                    select.append(f"{side}.{quoted} AS {as_}")
        kind = "CROSS JOIN" if self.join.how == "cross" else f"{self.join.how.upper()} JOIN"
        return f"SELECT {', '.join(select)} FROM {tables[0]} {kind} {tables[1]}{on}"


class Split(SpecModel):
    """What a split splits: rows for which `where` is true go to one name, the others to another.

    `nulls` says where rows go for which it is null.
    """

    input: str
    where: str
    true: str
    false: str
    nulls: Literal["true", "false"] = "false"


class SplitNode(SpecModel):
    """Sends each row of a node to exactly one of two names."""

    kind: ClassVar[str] = "split"
    split: Split

    def sql(self) -> dict[str, str]:
        """Return the query of each of its names."""
        holds = f"coalesce((\n{self.split.where}\n), {self.split.nulls})"
        start = f"SELECT * FROM {duckdb_name(self.split.input)} WHERE"
        return {self.split.true: f"{start} {holds}", self.split.false: f"{start} NOT {holds}"}


class StageNode(SpecModel, ABC):
    """Base of the kinds that are no SQL: their rows are made between two queries (see `lakeward.pipelines.stage`)."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def inputs(self) -> Mapping[str, str]:
        """The name that is read for each of its inputs, by the input's own name."""

    def place(self, name: str) -> tuple[str, ...]:
        """Return where below the node an input is written."""
        return (self.kind, name)

    def meaning(self) -> str:
        """Return what counts when a pipeline is compared with the one that was applied."""
        return json.dumps(self.model_dump()[self.kind], sort_keys=True, ensure_ascii=False)

    logs: ClassVar[bool] = False
    """Whether the rows of each build are about that build, and belong beside those of earlier ones."""

    @abstractmethod
    def not_linear(self, moving: Collection[str]) -> str | None:
        """Return why new rows of some inputs are not enough for its new rows, as the end of a sentence; None: they are.

        Args:
            moving: the inputs that get only new rows; all of the others are read whole.
        """


def _from_pairs(value: object) -> object:
    pairs = isinstance(value, list) and all(isinstance(each, list) and len(each) == 2 for each in value)
    return dict(value) if isinstance(value, list) and pairs else value


def _as_pairs(types: dict[str, str]) -> list[list[str]]:
    return [[name, type_] for name, type_ in types.items()]


TypesInOrder = Annotated[dict[str, str], BeforeValidator(_from_pairs), PlainSerializer(_as_pairs)]
"""Types by column. It is stored as pairs: a mapping would lose its order there."""


class Predicted(SpecModel):
    """What a model node predicts, from which features. A list of features means columns of the same names."""

    input: str
    model: str
    features: dict[str, str]
    outputs: TypesInOrder
    batch_rows: int = Field(default=65_536, ge=1)

    @field_validator("features", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        if not all(isinstance(each, str) for each in value) or len(set(value)) < len(value):
            raise PydanticCustomError("features", "a list of different names, or a mapping of features to columns")
        return {each: each for each in value}


class ModelNode(StageNode):
    """Gives the rows of a node with the outputs of a model as columns more."""

    kind: ClassVar[str] = "model"
    model: Predicted

    @property
    def inputs(self) -> Mapping[str, str]:
        """See `StageNode.inputs`."""
        return {"input": self.model.input}

    def meaning(self) -> str:
        """See `StageNode.meaning`. The order of outputs is that of a dataset that is there, and does not count."""
        facts = {**self.model.model_dump(), "outputs": self.model.outputs}
        return json.dumps(facts, sort_keys=True, ensure_ascii=False)

    def not_linear(self, moving: Collection[str]) -> str | None:
        """See `StageNode.not_linear`. Each row is predicted by itself."""
        return None


class PythonCall(SpecModel):
    """What a python node calls, with which nodes, and the columns that the function gives.

    A list of inputs means arguments of the same names. `row_wise` says that new rows of one input give new rows, and
    change nothing of what came of the old ones.
    """

    call: str
    inputs: dict[str, str]
    columns: TypesInOrder
    row_wise: bool = False

    @field_validator("inputs", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        if not all(isinstance(each, str) for each in value) or len(set(value)) < len(value):
            raise PydanticCustomError("inputs", "a list of different names, or a mapping of arguments to nodes")
        return {each: each for each in value}


class PythonNode(StageNode):
    """Gives the rows that a function of the project returns for the rows of other nodes."""

    kind: ClassVar[str] = "python"
    python: PythonCall

    @property
    def inputs(self) -> Mapping[str, str]:
        """See `StageNode.inputs`; an input is called as the argument that gets it."""
        return self.python.inputs

    def place(self, name: str) -> tuple[str, ...]:
        """See `StageNode.place`."""
        return (self.kind, "inputs", name)

    def meaning(self) -> str:
        """See `StageNode.meaning`. The order of columns is that of a dataset that is there, and does not count."""
        facts = {**self.python.model_dump(), "columns": self.python.columns}
        return json.dumps(facts, sort_keys=True, ensure_ascii=False)

    def not_linear(self, moving: Collection[str]) -> str | None:
        """See `StageNode.not_linear`."""
        if not self.python.row_wise:
            return "is Python, and any of its rows may depend on all that it reads: say `row_wise: true` if none does"
        if len(moving) > 1:
            return f"reads new rows of {' and '.join(moving)}: give all but one of its sources `window: full`"
        return None


class Fitted(SpecModel):
    """What a fit node trains, on which rows, and how it is judged.

    `estimator` names a function of the project, as in `models/delay.py:make`, that returns a scikit-learn estimator.
    """

    input: str
    estimator: str
    features: list[str] = Field(min_length=1)
    target: str
    model: str
    task: Literal["regression", "classification"] = "regression"
    holdout: float = Field(default=0.2, ge=0, lt=1)
    split_by: str | None = None
    seed: int = Field(default=0, ge=0, lt=2**32)
    max_rows: int = Field(default=1_000_000, ge=1)
    nulls: Literal["refuse", "allow"] = "refuse"


class FitNode(StageNode):
    """Trains a model on the rows of a node, registers it, and gives its metrics as rows."""

    kind: ClassVar[str] = "fit"
    logs: ClassVar[bool] = True
    fit: Fitted

    @property
    def inputs(self) -> Mapping[str, str]:
        """See `StageNode.inputs`."""
        return {"input": self.fit.input}

    def meaning(self) -> str:
        """See `StageNode.meaning`. A limit makes no other model."""
        facts = self.fit.model_dump(exclude={"max_rows"})
        return json.dumps(facts, sort_keys=True, ensure_ascii=False)

    def not_linear(self, moving: Collection[str]) -> str | None:
        """See `StageNode.not_linear`."""
        return "trains on all rows"


def names_of(name: str, node: Node) -> tuple[str, ...]:
    """Return the names under which other nodes read a node: its own, or those of a split's two sides."""
    return (node.split.true, node.split.false) if isinstance(node, SplitNode) else (name,)


Node = SourceNode | TransformNode | JoinNode | SplitNode | StageNode

NODES: tuple[type[Node], ...] = (
    SourceNode,
    TransformNode,
    JoinNode,
    SplitNode,
    ModelNode,
    FitNode,
    PythonNode,
)
"""Every kind of node, in the order of the documentation."""
