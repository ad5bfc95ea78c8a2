"""The decorator `lakeward.transform`: declares a pipeline that is one Python function.

It changes nothing of the function. What it declares is read when a project is loaded, and means nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar

from lakeward.errors import UsageError

Function = TypeVar("Function", bound=Callable[..., object])

OF_OUTPUT = ("dataset", "strategy", "primary_key", "arm", "allow_empty", "require_incremental", "expectations")
OF_NODE = ("columns", "row_wise")
OF_PIPELINE = ("pipeline", "tags", "schedule")


@dataclass(frozen=True)
class Declaration:
    """What a decorator said: its arguments, those that were given, and the function below it."""

    function: FunctionType
    given: Mapping[str, Any]

    @property
    def node(self) -> str:
        """The name of the function's node: its own, with `_` behind it while a source is called so."""
        name, sources = self.function.__name__, self.given["sources"]
        while isinstance(sources, Mapping) and name in sources:
            name += "_"
        return name

    def spec(self, file: str) -> dict[str, Any]:
        """Return the pipeline in the form of its YAML. Its values may be wrong.

        Args:
            file: the function's, by its path in the project.
        """
        given: dict[str, Any] = {name: _plain(value) for name, value in self.given.items()}
        sources = given["sources"]
        nodes = {name: each if isinstance(each, dict) else {"source": each} for name, each in sources.items()}
        call = {"call": f"{file}:{self.function.__name__}", "inputs": list(sources)}
        nodes[self.node] = {"python": {**call, **_only(given, OF_NODE)}}
        named = {"pipeline": self.function.__name__, **_only(given, OF_PIPELINE)}
        return {**named, "nodes": nodes, "outputs": [{"from": self.node, **_only(given, OF_OUTPUT)}]}


_COLLECTED: ContextVar[list[Declaration] | None] = ContextVar("lakeward_transforms", default=None)


@contextmanager
def collecting() -> Iterator[list[Declaration]]:
    """Collect what is declared in the block, in order."""
    found: list[Declaration] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def transform(
    *,
    dataset: str,
    sources: Mapping[str, str | Mapping[str, str]],
    columns: Mapping[str, str],
    strategy: str,
    primary_key: Sequence[str] | None = None,
    arm: str | None = None,
    allow_empty: bool | None = None,
    require_incremental: bool | None = None,
    expectations: Sequence[str | Mapping[str, Any]] | None = None,
    tags: Sequence[str] | None = None,
    schedule: str | None = None,
    pipeline: str | None = None,
    row_wise: bool | None = None,
) -> Callable[[Function], Function]:
    """Declare the function below it as a pipeline. It stands in a file of a project's folder `pipelines/`.

    The function gets a `pyarrow.RecordBatchReader` for each source, by keyword, and returns a RecordBatchReader, a
    Table, or RecordBatches one after the other, as a generator does. Memory stays bounded by batches if it yields them.

    Args:
        dataset: the one that it writes: `catalog.schema.dataset`.
        sources: the datasets that it reads, by the names of its arguments. `{"source": …, "window": "full"}` is one of
            which every build reads all rows.
        columns: what it returns, with types. Others are an error; their order does not matter.
        strategy: how its rows are written: `replace`, `mirror`, `snapshot_replace`, `append_new`, `append_always`.
        primary_key: the columns that identify a row.
        arm: where the dataset is created: `postgres` or `iceberg`.
        allow_empty: whether a build may leave the dataset with no rows.
        require_incremental: whether a build that would compute everything anew is refused.
        expectations: what the rows have to be, as in YAML.
        tags: names by which `lakeward build --select` chooses.
        schedule: when it is to be built, as cron has it: `0 6 * * *`; or `on_change`.
        pipeline: its name; None: that of the function.
        row_wise: says that new rows of a source give new rows and change nothing of what came of the old ones, so that
            a build may be a delta.

    Raises:
        UsageError: what is below it is no function.

    Example:
        >>> @transform(
        ...     dataset="main.analytics.scores",
        ...     sources={"orders": "main.raw.orders"},
        ...     columns={"id": "long"},
        ...     strategy="replace",
        ... )
        ... def scores(orders):
        ...     for batch in orders:
        ...         yield batch.select(["id"])
    """
    said = {name: value for name, value in locals().items() if value is not None}

    def declared(function: Function) -> Function:
        if not isinstance(function, FunctionType):
            raise UsageError(
                f"lakeward.transform stands above {type(function).__name__}, and declares a function",
                next_step="put it directly above a `def`",
            )
        found = _COLLECTED.get()
        if found is not None:
            found.append(Declaration(function, said))
        return function

    return declared


def _only(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _plain(value: Any) -> Any:
    """Return a value as YAML would give it: mappings and lists."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
