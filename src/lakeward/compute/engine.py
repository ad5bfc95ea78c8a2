"""What an engine does: tell a query's columns without reading data, and run it over files or Arrow streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from lakeward.in_place import InPlace
from lakeward.types.logical import LogicalType
from lakeward.types.schema import Schema

BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Input:
    """One named input of a query.

    Args:
        schema: its columns and their types; known before anything is read, so that only the needed columns are.
        open: starts the read of the named columns, in any order, by the thread that calls `run`. Called at most once,
            and once more if the query failed while it read them in place: what is wrong with them comes out of it.
        in_place: says how to read the same rows in place; called at most once, before `open`. It returns None, and is
            None, where a stream is the only way. An engine need not ask.
    """

    schema: Schema
    open: Callable[[Sequence[str]], pa.RecordBatchReader]
    in_place: Callable[[], InPlace | None] | None = None


class Engine(ABC):
    """Runs one sealed, read-only query at a time; holds no data between queries. Safe to share between threads."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def threads(self) -> int:
        """How many threads a query may use, and whatever else computes for it."""

    @property
    @abstractmethod
    def temp_directory(self) -> Path:
        """Where what does not fit into memory may wait; made if it is missing."""

    @abstractmethod
    def share(self, parts: int) -> Engine:
        """Return an engine whose queries may use one part of what this one's may: for so many that run at a time."""

    def get_ready(self) -> None:  # noqa: B027
        """Take note that a query will be run soon, and do ahead what can be done. Nothing has to be."""

    @abstractmethod
    def describe(
        self, sql: str, inputs: Mapping[str, Schema], steps: Mapping[str, str] | None = None
    ) -> dict[str, LogicalType]:
        """Return the result's columns and types, in order, without reading data.

        Args:
            sql: one SELECT.
            inputs: the schemas of the tables that it may read, by name.
            steps: queries that it may read by name like tables, each of which may read the inputs and earlier steps.
                Unlike the result, a step may have columns of any type.

        Raises:
            SqlError: a query is wrong or refused. `step` is the name of the step at fault or None; `position` is in
                that step's text, or in `sql`.
            SchemaError: two columns share a name, or a result column has a type that no dataset has; with `step`.
        """

    @abstractmethod
    def run(self, sql: str, inputs: Mapping[str, Input], batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        """Start the query and return its result as a stream in the types that `describe` tells.

        The stream owns the engine's resources (memory, temporary files) and frees them when it is exhausted, fails or
        is released.

        Raises:
            SqlError, SchemaError: as `describe`.
            TimeLimitExceeded: it computed for longer than it may; raised here or by the stream.
            ComputeError: it failed while it ran; raised here or by the stream. An error that an input raised comes
                through unchanged.
        """
