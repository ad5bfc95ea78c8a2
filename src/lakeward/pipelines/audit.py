"""Judges what a build prepared before it is decided, on either arm, and all of its outputs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from lakeward.compute.engine import Engine
from lakeward.control.expectation_results import ExpectationResult, ExpectationResults
from lakeward.control.records import OpenTransaction
from lakeward.control.tree import DatasetRecord
from lakeward.errors import ComputeError, ExpectationFailed
from lakeward.pipelines.expectation_check import Expected
from lakeward.pipelines.judge import Judge
from lakeward.pipelines.judged_rows import Guarded, JudgedRows
from lakeward.pipelines.key_bounds import KeyBounds
from lakeward.pipelines.quarantine import Apart
from lakeward.storage.facade import Storage
from lakeward.storage.requests import Output, PreparedVersion


@dataclass
class BuildAudit:
    """The audit of one build.

    It waits until every output is prepared: what one output knows may be expected of another one.

    Args:
        pipeline: its name; None: it runs once, and nobody applied it.
        engine: computes.
        storage: reads what was prepared, and other datasets.
        results: keeps what was found.
        others: the datasets that are read besides, and their versions, by name.
    """

    pipeline: str | None
    engine: Engine
    storage: Storage
    results: ExpectationResults
    others: Mapping[str, tuple[DatasetRecord, int]]
    _guarded: list[Guarded] = field(default_factory=list)
    _seen: int = 0

    def guard(self, output: Output, expected: Expected, apart: Apart | None = None) -> Output:
        """Return the output so that it is judged before it is decided. Every output of the build goes through this."""
        guarded = Guarded(output, expected, apart, KeyBounds(output.dataset.schema))
        self._guarded.append(guarded)
        return replace(
            output,
            rows=guarded.incoming,
            opened=partial(self._opened, guarded),
            audit=partial(self._prepared, guarded),
            audit_nothing=partial(self._arrived),
        )

    @property
    def warnings(self) -> list[str]:
        """What was found, and stopped nothing, for people."""
        return [
            f"{each.output.dataset.name}: {line(result)}"
            for each in self._guarded
            for result in each.results
            if not result.good and not result.refused
        ]

    def _opened(self, guarded: Guarded, transaction: OpenTransaction) -> None:
        guarded.transaction = transaction
        if guarded.output.opened is not None:
            guarded.output.opened(transaction)
        if guarded.apart is not None:
            guarded.apart.opened(transaction)

    def _prepared(self, guarded: Guarded, prepared: PreparedVersion) -> None:
        guarded.prepared = prepared
        self._arrived()

    def _arrived(self) -> None:
        self._seen += 1
        if self._seen < len(self._guarded):
            return
        rows = JudgedRows(self.storage, self.others, self._guarded)
        refused: list[Guarded] = []
        for each in self._guarded:
            _refuse_nothing_left(each)
            each.results = judged(each, rows, self.engine, self.results, _title(self.pipeline), self.pipeline)
            self.results.keep(each.output.dataset.id, each.version, each.results)
            refused += [each] if any(result.refused for result in each.results) else []
        if refused:
            raise _failure(self.pipeline, refused)


def judged(
    guarded: Guarded,
    rows: JudgedRows,
    engine: Engine,
    results: ExpectationResults,
    title: str,
    pipeline: str | None,
) -> list[ExpectationResult]:
    """Judge one output.

    Args:
        guarded: the output, and what is expected of it.
        rows: opens its rows.
        engine: computes.
        results: what was found in versions before.
        title: what is written, for errors.
        pipeline: the one that is built, if any.

    Raises:
        ComputeError: what is expected can't be computed.
    """
    before = results.of_rows(guarded.output.dataset.id, guarded.parent) if guarded.parent else []
    try:
        return Judge(guarded, rows, engine, before).results()
    except ComputeError as error:
        name = guarded.output.dataset.name
        named = type(error)(
            f"{title}: what is expected of {name} can't be computed: {error.message}",
            safe=safe([guarded]),
            next_step=error.next_step,
        )
        named.fields.update(error.fields, pipeline=pipeline, dataset=name)
        raise named from error


def _refuse_nothing_left(guarded: Guarded) -> None:
    """Refuse a first version without a row that is left: without a version, they would be taken out every time."""
    if guarded.apart is None or guarded.prepared is not None or guarded.parent or not guarded.apart.bad:
        return
    name = guarded.output.dataset.name
    raise ExpectationFailed(
        f"dataset {name}: all {guarded.apart.bad:,} rows of its first version fail what is expected of them",
        safe="nothing was written",
        next_step=f"`lakeward dataset expectations {name}` shows what is expected; look at the query, or at that",
        dataset=name,
    )


def line(result: ExpectationResult) -> str:
    """Return what was found, for people."""
    samples = ", ".join(
        f"({', '.join(f'{name}={value}' for name, value in sample.items())})" for sample in result.samples
    )
    return f"{result.kind} ({result.text}): {result.message}" + (f": {samples}" if samples else "")


def safe(guarded: Sequence[Guarded]) -> str:
    """Return that outputs are as they were, for errors."""
    parts = [
        f"dataset {each.output.dataset.name} "
        + (f"is unchanged at version {each.parent}" if each.parent else "has no version, as before")
        for each in guarded
    ]
    return ", ".join(parts)


def _title(pipeline: str | None) -> str:
    return f"pipeline {pipeline!r}" if pipeline is not None else "the run"


def _failure(pipeline: str | None, refused: Sequence[Guarded]) -> ExpectationFailed:
    count = sum(result.refused for each in refused for result in each.results)
    done = "was not built" if pipeline is not None else "wrote nothing"
    return failure(refused, f"{_title(pipeline)} {done}: {count} of its expectations failed", pipeline)


def failure(refused: Sequence[Guarded], what: str, pipeline: str | None) -> ExpectationFailed:
    """Return the error for outputs that are refused, with a line for each expectation that failed.

    Args:
        refused: which.
        what: the first line.
        pipeline: the one that was built, if any.
    """
    lines = [
        f"{each.output.dataset.name}: {line(result)}" for each in refused for result in each.results if result.refused
    ]
    return ExpectationFailed(
        "\n".join([what, *lines]),
        safe=safe(refused),
        next_step=f"lakeward dataset expectations {refused[0].output.dataset.name}",
        pipeline=pipeline,
        datasets=[each.output.dataset.name for each in refused],
        expectations=[
            {"dataset": each.output.dataset.name, **result.to_json()}
            for each in refused
            for result in each.results
            if result.refused
        ],
    )
