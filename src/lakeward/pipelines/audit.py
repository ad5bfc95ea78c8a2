"""Judges what a build prepared before it is decided: on either arm, like any reader, and all of its outputs together.

What is expected of one output is judged by one pass over its rows, as far as aggregates can tell it; a key's uniqueness
and what other datasets know take a pass of their own. Rows are looked at one by one only where something failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from lakeward.compute.engine import Engine, Input
from lakeward.control.expectation_results import ExpectationResult, ExpectationResults
from lakeward.control.records import OpenTransaction
from lakeward.control.tree import DatasetRecord
from lakeward.errors import ComputeError, ExpectationFailed
from lakeward.pipelines.expectation import (
    FAIL,
    FAILED,
    QUARANTINE,
    ROWS,
    Expectation,
    Found,
    RowExpectation,
    Verdict,
)
from lakeward.pipelines.expectation_check import Expected
from lakeward.pipelines.quarantine import Apart
from lakeward.storage.facade import Storage
from lakeward.storage.requests import Output, PreparedVersion, ReadRequest
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import name_key

SAMPLES = 5
"""At most so many rows that fail are shown for one expectation."""

SHOWN_COLUMNS = 8
"""Of a dataset without a key, so many columns of them."""

READER = "pipeline.expectation"


@dataclass
class _Guarded:
    """One output, and what is known of it by now."""

    output: Output
    expected: Expected
    apart: Apart | None
    transaction: OpenTransaction | None = None
    prepared: PreparedVersion | None = None
    results: list[ExpectationResult] = field(default_factory=list)


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
    _guarded: list[_Guarded] = field(default_factory=list)
    _seen: int = 0

    def guard(self, output: Output, expected: Expected, apart: Apart | None = None) -> Output:
        """Return the output so that it is judged before it is decided. Every output of the build goes through this."""
        guarded = _Guarded(output, expected, apart)
        self._guarded.append(guarded)
        return replace(
            output,
            opened=partial(self._opened, guarded),
            audit=partial(self._prepared, guarded),
            audit_nothing=partial(self._arrived),
        )

    @property
    def warnings(self) -> list[str]:
        """What was found, and stopped nothing, for people."""
        return [
            f"{each.output.dataset.name}: {_line(result)}"
            for each in self._guarded
            for result in each.results
            if not result.good and not result.refused
        ]

    def _opened(self, guarded: _Guarded, transaction: OpenTransaction) -> None:
        guarded.transaction = transaction
        if guarded.output.opened is not None:
            guarded.output.opened(transaction)
        if guarded.apart is not None:
            guarded.apart.opened(transaction)

    def _prepared(self, guarded: _Guarded, prepared: PreparedVersion) -> None:
        guarded.prepared = prepared
        self._arrived()

    def _arrived(self) -> None:
        self._seen += 1
        if self._seen < len(self._guarded):
            return
        refused: list[_Guarded] = []
        for each in self._guarded:
            _refuse_nothing_left(each)
            each.results = _Judge(self, each).results()
            self.results.keep(each.output.dataset.id, _version(each), each.results)
            refused += [each] if any(result.refused for result in each.results) else []
        if refused:
            raise _failure(self.pipeline, refused)

    def rows_of(self, guarded: _Guarded, since: int | None) -> Callable[[Sequence[str]], pa.RecordBatchReader]:
        """Return what opens the rows that an output would have, or those of them that are new since a version."""

        def opened(columns: Sequence[str]) -> pa.RecordBatchReader:
            if guarded.prepared is not None:
                return self.storage.read_prepared(guarded.prepared, columns, since)
            return self._read(guarded.output.dataset, _parent(guarded), columns)

        return opened

    def known(self, name: str) -> Callable[[Sequence[str]], pa.RecordBatchReader]:
        """Return what opens the rows of another dataset: as this build would leave it, if it writes it."""
        own = next((each for each in self._guarded if name_key(each.output.dataset.name) == name_key(name)), None)
        if own is not None:
            return self.rows_of(own, None)
        record, version = self.others[name]
        return partial(self._read, record, version)

    def _read(self, record: DatasetRecord, version: int, columns: Sequence[str]) -> pa.RecordBatchReader:
        if not version:
            empty = pa.schema([(name, pa.null()) for name in columns]).empty_table()
            return empty.to_reader()
        return self.storage.read(record, ReadRequest(tuple(columns), version=version), reader=READER)

    def before(self, guarded: _Guarded) -> Callable[[Sequence[str]], pa.RecordBatchReader]:
        """Return what opens the rows of the version before."""
        return partial(self._read, guarded.output.dataset, _parent(guarded))


class _Judge:
    """Judges one output."""

    def __init__(self, audit: BuildAudit, guarded: _Guarded) -> None:
        self.audit = audit
        self.guarded = guarded
        self.expected = guarded.expected
        self.scope = guarded.expected.scope
        self.parent = _parent(guarded)
        before = audit.results.of(guarded.output.dataset.id, self.parent) if self.parent else []
        self.before = {result.definition: result for result in before}

    def results(self) -> list[ExpectationResult]:
        """Return what was found, in the order of the spec."""
        judged = dict(enumerate(self.expected.expectations))
        parted = self.expected.parted
        whole = {at: each for at, each in judged.items() if at not in parted and not self.only_new(each)}
        new = {at: each for at, each in judged.items() if at not in parted and at not in whole}
        found = {at: self.of_the_parted(at) for at in parted} | self.measured(whole, None)
        found |= self.measured(new, self.parent)
        return [self.result(at, each, found[at], self.parent if at in new else None) for at, each in judged.items()]

    def only_new(self, expectation: Expectation) -> bool:
        """Say whether it is enough to judge the rows that this version wrote.

        The others are those of the version before, unchanged; it is, if all of them are known to hold for good.
        """
        known = self.before.get(expectation.definition())
        return (
            isinstance(expectation, RowExpectation)
            and expectation.lasting
            and expectation.at_least == 1
            and known is not None
            and known.on_fail != QUARANTINE
            and known.outcome != FAILED
        )

    def of_the_parted(self, position: int) -> Found:
        apart = self.guarded.apart
        assert apart is not None, "else nothing would have been taken out"
        return Found(apart.rows, {"failed": apart.failed[position]}, lambda: None)

    def measured(self, expectations: Mapping[int, Expectation], since: int | None) -> dict[int, Found]:
        """Compute the measures of expectations, over all rows or those that are new since a version."""
        if not expectations:
            return {}
        measures = {at: each.measures(self.scope) for at, each in expectations.items()}
        queries = {at: query for at, each in expectations.items() if (query := each.query(self.scope)) is not None}
        parts = ["count(*) AS n"]
        parts += [f"{sql} AS m{at}_{key}" for at, each in measures.items() for key, sql in each.items()]
        rows = self.one_row(f"SELECT {', '.join(parts)} FROM {ROWS}", since)
        found = {}
        for at, each in expectations.items():
            values = {key: rows[f"m{at}_{key}"] for key in measures[at]}
            if at in queries:
                values |= self.one_row(queries[at], since)
            found[at] = Found(int(rows["n"]), values, partial(self.previous, each))
        return found

    def previous(self, expectation: Expectation) -> str | None:
        """Return the value of the version before: as it was recorded, or else computed now."""
        if not self.parent:
            return None
        for result in self.before.values():
            kind, facts = json.loads(result.definition)
            if kind == expectation.name and facts["sql"] == expectation.facts()["sql"] and result.observed is not None:
                return result.observed
        [sql] = expectation.measures(self.scope).values()
        row = self.one_row(f"SELECT count(*) AS n, {sql} AS value FROM {ROWS}", None, self.audit.before(self.guarded))
        value = row["value"]
        return None if value is None else repr(value) if isinstance(value, float) else str(value)

    def result(self, position: int, each: Expectation, found: Found, since: int | None) -> ExpectationResult:
        """Return what is kept of a judgement."""
        verdict = each.judge(found)
        refused = each.on_fail == FAIL and verdict.bad
        if each.on_fail == QUARANTINE and isinstance(each, RowExpectation):
            # What may be taken out is told by a share, and nothing else.
            refused = verdict.bad and each.at_least != 1
            verdict = self.with_place(verdict)
        return ExpectationResult(
            position=position,
            kind=each.name,
            text=each.describe(),
            definition=each.definition(),
            on_fail=each.on_fail,
            outcome=verdict.outcome,
            refused=refused,
            rows_checked=found.rows,
            rows_failed=verdict.rows_failed,
            observed=verdict.observed,
            message=verdict.message,
            samples=self.samples(each, verdict, since),
        )

    def with_place(self, verdict: Verdict) -> Verdict:
        apart = self.guarded.apart
        if apart is None or not verdict.rows_failed:
            return verdict
        return replace(verdict, message=f"{verdict.message}; they go to {apart.quarantine}")

    def samples(self, each: Expectation, verdict: Verdict, since: int | None) -> list[dict[str, str | None]]:
        """Return some of the rows that fail, by key, the first ones in its order."""
        failing = each.failing(self.scope)
        if failing is None or verdict.outcome != FAILED or not verdict.rows_failed or each.on_fail == QUARANTINE:
            return []
        schema = self.scope.schema
        names = [duckdb_name(name) for name in schema.primary_key or schema.names[:SHOWN_COLUMNS]]
        texts = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in names)
        order = ", ".join(f"bad.{name} NULLS FIRST" for name in names)
        query = f"SELECT {texts} FROM ({failing}) AS bad ORDER BY {order} LIMIT {SAMPLES}"
        return [{name: _shown(value) for name, value in row.items()} for row in self.run(query, since).to_pylist()]

    def one_row(
        self,
        query: str,
        since: int | None,
        rows: Callable[[Sequence[str]], pa.RecordBatchReader] | None = None,
    ) -> dict[str, Any]:
        [row] = self.run(query, since, rows).to_pylist()
        return dict(row)

    def run(
        self,
        query: str,
        since: int | None,
        rows: Callable[[Sequence[str]], pa.RecordBatchReader] | None = None,
    ) -> pa.Table:
        inputs = {ROWS: Input(self.scope.schema, rows or self.audit.rows_of(self.guarded, since))}
        for name, called in self.scope.others.items():
            inputs[called] = Input(self.scope.schemas[name], self.audit.known(name))
        try:
            return self.engine_run(query, inputs)
        except ComputeError as error:
            name = self.guarded.output.dataset.name
            named = type(error)(
                f"{_title(self.audit.pipeline)}: what is expected of {name} can't be computed: {error.message}",
                safe=_safe([self.guarded]),
                next_step=error.next_step,
            )
            named.fields.update(error.fields, pipeline=self.audit.pipeline, dataset=name)
            raise named from error

    def engine_run(self, query: str, inputs: Mapping[str, Input]) -> pa.Table:
        return self.audit.engine.run(query, inputs).read_all()


def _parent(guarded: _Guarded) -> int:
    assert guarded.transaction is not None, "it is opened before anything is prepared"
    return guarded.transaction.parent_version


def _version(guarded: _Guarded) -> int:
    assert guarded.transaction is not None, "it is opened before anything is prepared"
    return guarded.prepared.where.version if guarded.prepared is not None else guarded.transaction.version


def _shown(value: str | None) -> str | None:
    """Return a text as it can be kept: Postgres has no NUL in JSON, and long ones help nobody."""
    if value is None:
        return None
    text = value.replace("\0", "␀")
    return text if len(text) <= 80 else text[:79] + "…"


def _refuse_nothing_left(guarded: _Guarded) -> None:
    """Refuse a first version without a row that is left: without a version, they would be taken out every time."""
    if guarded.apart is None or guarded.prepared is not None or _parent(guarded) or not guarded.apart.bad:
        return
    name = guarded.output.dataset.name
    raise ExpectationFailed(
        f"dataset {name}: all {guarded.apart.bad:,} rows of its first version fail what is expected of them",
        safe="nothing was written",
        next_step=f"`lakeward dataset expectations {name}` shows what is expected; look at the query, or at that",
        dataset=name,
    )


def _line(result: ExpectationResult) -> str:
    samples = ", ".join(
        f"({', '.join(f'{name}={value}' for name, value in sample.items())})" for sample in result.samples
    )
    return f"{result.kind} ({result.text}): {result.message}" + (f": {samples}" if samples else "")


def _safe(guarded: Sequence[_Guarded]) -> str:
    parts = [
        f"dataset {each.output.dataset.name} "
        + (f"is unchanged at version {_parent(each)}" if _parent(each) else "has no version, as before")
        for each in guarded
    ]
    return ", ".join(parts)


def _title(pipeline: str | None) -> str:
    return f"pipeline {pipeline!r}" if pipeline is not None else "the run"


def _failure(pipeline: str | None, refused: Sequence[_Guarded]) -> ExpectationFailed:
    lines = [
        f"{each.output.dataset.name}: {_line(result)}" for each in refused for result in each.results if result.refused
    ]
    first = refused[0].output.dataset.name
    done = "was not built" if pipeline is not None else "wrote nothing"
    return ExpectationFailed(
        f"{_title(pipeline)} {done}: {len(lines)} of its expectations failed\n" + "\n".join(lines),
        safe=_safe(refused),
        next_step=f"lakeward dataset expectations {first}",
        pipeline=pipeline,
        datasets=[each.output.dataset.name for each in refused],
        expectations=[
            {"dataset": each.output.dataset.name, **result.to_json()}
            for each in refused
            for result in each.results
            if result.refused
        ],
    )
