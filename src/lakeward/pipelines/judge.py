"""Judges one output of a build: reads what has to be read of its rows, and puts it together with what was known.

One pass over the rows tells all that aggregates can tell; a key's uniqueness and what other datasets know take one of
their own. Where what was found in the version before still holds, the pass is over the rows that this version wrote, or
there is none; what is kept is the same. Rows are looked at one by one only where something failed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from lakeward.compute.engine import Engine, Input
from lakeward.control.expectation_results import ExpectationResult
from lakeward.pipelines.expectation import (
    FAIL,
    FAILED,
    MET,
    QUARANTINE,
    ROWS,
    Expectation,
    Found,
    RowExpectation,
    Verdict,
)
from lakeward.pipelines.judged_rows import Guarded, JudgedRows, Opened
from lakeward.pipelines.known import Extent, Known
from lakeward.types.quoting import duckdb_name

_BEFORE = "before"
"""What SQL calls the rows of the version before."""

_NOTHING = Found(0, {}, lambda: None)
"""What no rows give."""

SAMPLES = 5
"""At most so many rows that fail are shown for one expectation."""

SHOWN_COLUMNS = 8
"""Of a dataset without a key, so many columns of them."""


class Judge:
    """Judges one output.

    Args:
        guarded: the output.
        rows: opens its rows, and those of other datasets.
        engine: computes.
        before: what was found in the version before.
    """

    def __init__(self, guarded: Guarded, rows: JudgedRows, engine: Engine, before: Sequence[ExpectationResult]) -> None:
        self.guarded = guarded
        self.rows = rows
        self.engine = engine
        self.expected = guarded.expected
        self.scope = guarded.expected.scope
        # What was found of rows that were taken out is about those that were computed, not about the version.
        self.before = {result.definition: result for result in before if result.on_fail != QUARANTINE}

    def results(self) -> list[ExpectationResult]:
        """Return what was found, in the order of the spec.

        Raises:
            ComputeError: what is expected can't be computed.
        """
        found = {at: self.of_the_parted(at) for at in self.expected.parted}
        if self.guarded.without_rows:
            rows = {at for at, each in enumerate(self.expected.expectations) if each.of_rows}
            found |= dict.fromkeys(rows - found.keys(), _NOTHING)
        judged = {at: each for at, each in enumerate(self.expected.expectations) if at not in found}
        known = {at: self.known(each) for at, each in judged.items()}
        extents = {at: each.extent(known[at], self.scope) for at, each in judged.items()}
        new = {at: each for at, each in judged.items() if extents[at] is Extent.NEW}
        measured = self.of_new(new, known)
        measured.update((at, {}) for at in judged if extents[at] is Extent.NONE)
        for at, values in measured.items():
            whole = judged[at].whole(known[at], values)
            if whole is not None:
                found[at] = self.found(judged[at], known[at].rows, whole)
        found |= self.of_all({at: each for at, each in judged.items() if at not in found})
        return [
            self.result(at, each, found[at], only_new=at in new and _none_failed(known[at]))
            for at, each in enumerate(self.expected.expectations)
        ]

    def known(self, expectation: Expectation) -> Known:
        """Return what the expectation can go on from."""
        return self.guarded.known(self.before.get(expectation.definition()))

    def of_the_parted(self, position: int) -> Found:
        """Return what was found when rows were taken apart: it is about those that were computed."""
        apart = self.guarded.apart
        assert apart is not None, "else nothing would have been taken out"
        return Found(apart.rows, {"failed": apart.failed[position]}, lambda: None)

    def of_new(self, expectations: Mapping[int, Expectation], known: Mapping[int, Known]) -> dict[int, dict[str, Any]]:
        """Compute the measures of the rows that this version wrote."""
        if not expectations:
            return {}
        measures = {at: each.new_measures(known[at], self.scope) for at, each in expectations.items()}
        if not any(each.meets for each in expectations.values()):
            return self.measured(measures, ROWS, only_new=True)[1]
        return self.measured(
            measures, self.met(), only_new=True, more={_BEFORE: self.rows.that_can_be_met(self.guarded)}
        )[1]

    def met(self) -> str:
        """Return the new rows and `MET`, as a relation."""
        keys = [duckdb_name(name) for name in self.scope.schema.primary_key]
        same = " AND ".join(f"b.{key} = r.{key}" for key in keys)
        # The new rows stand on the right: that is the side which a join keeps, and the others stream past it.
        joined = f"{_BEFORE} AS b RIGHT JOIN {ROWS} AS r ON {same}"
        return f"(SELECT r.*, b.{keys[0]} IS NOT NULL AS {MET} FROM {joined}) AS {ROWS}"

    def of_all(self, expectations: Mapping[int, Expectation]) -> dict[int, Found]:
        """Compute the measures of all rows."""
        if not expectations:
            return {}
        count, found = self.measured({at: each.measures(self.scope) for at, each in expectations.items()}, ROWS)
        for at, each in expectations.items():
            query = each.query(self.scope)
            if query is not None:
                found[at] |= self.one_row(query)
        return {at: self.found(each, count, found[at]) for at, each in expectations.items()}

    def measured(
        self, measures: Mapping[int, Mapping[str, str]], relation: str, **rows: Any
    ) -> tuple[int, dict[int, dict[str, Any]]]:
        """Compute aggregates of several expectations in one pass over a relation, and how many rows it has."""
        parts = ["count(*) AS n"]
        parts += [f"{sql} AS m{at}_{key}" for at, each in measures.items() for key, sql in each.items()]
        row = self.one_row(f"SELECT {', '.join(parts)} FROM {relation}", **rows)
        return int(row["n"]), {at: {key: row[f"m{at}_{key}"] for key in each} for at, each in measures.items()}

    def found(self, expectation: Expectation, rows: int, values: Mapping[str, Any]) -> Found:
        """Return what all rows give."""
        return Found(rows, values, partial(self.previous, expectation))

    def previous(self, expectation: Expectation) -> str | None:
        """Return the value of the version before: as it was recorded, or else computed now."""
        if not self.guarded.parent:
            return None
        for result in self.before.values():
            kind, facts = json.loads(result.definition)
            if kind == expectation.name and facts["sql"] == expectation.facts()["sql"] and result.observed is not None:
                return result.observed
        [sql] = expectation.measures(self.scope).values()
        before = self.rows.before(self.guarded)
        row = self.one_row(f"SELECT count(*) AS n, {sql} AS value FROM {ROWS}", more={ROWS: before})
        value = row["value"]
        return None if value is None else repr(value) if isinstance(value, float) else str(value)

    def result(self, position: int, each: Expectation, found: Found, *, only_new: bool) -> ExpectationResult:
        """Return what is kept of a judgement; `only_new`: no row failed but some of those that this version wrote."""
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
            samples=self.samples(each, verdict, only_new=only_new),
        )

    def with_place(self, verdict: Verdict) -> Verdict:
        """Say where the rows that fail went."""
        apart = self.guarded.apart
        if apart is None or not verdict.rows_failed:
            return verdict
        return replace(verdict, message=f"{verdict.message}; they go to {apart.quarantine}")

    def samples(self, each: Expectation, verdict: Verdict, *, only_new: bool) -> list[dict[str, str | None]]:
        """Return some of the rows that fail, by key, the first ones in its order."""
        failing = each.failing(self.scope)
        if failing is None or verdict.outcome != FAILED or not verdict.rows_failed or each.on_fail == QUARANTINE:
            return []
        schema = self.scope.schema
        names = [duckdb_name(name) for name in schema.primary_key or schema.names[:SHOWN_COLUMNS]]
        texts = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in names)
        order = ", ".join(f"bad.{name} NULLS FIRST" for name in names)
        query = f"SELECT {texts} FROM ({failing}) AS bad ORDER BY {order} LIMIT {SAMPLES}"
        found = self.run(query, only_new=only_new and isinstance(each, RowExpectation))
        return [{name: _shown(value) for name, value in row.items()} for row in found.to_pylist()]

    def one_row(
        self, query: str, *, only_new: bool = False, more: Mapping[str, Opened] | None = None
    ) -> dict[str, Any]:
        """Run a query that gives one row; the arguments are those of `run`."""
        [row] = self.run(query, only_new=only_new, more=more).to_pylist()
        return dict(row)

    def run(self, query: str, *, only_new: bool = False, more: Mapping[str, Opened] | None = None) -> pa.Table:
        """Run a query over the rows, or the new ones, and more rows of the same columns by name."""
        opened = {ROWS: self.rows.of(self.guarded, only_new=only_new), **(more or {})}
        inputs = {name: Input(self.scope.schema, each) for name, each in opened.items()}
        for name, called in self.scope.others.items():
            inputs[called] = Input(self.scope.schemas[name], self.rows.known(name))
        return self.engine.run(query, inputs).read_all()


def _none_failed(known: Known) -> bool:
    return known.found is not None and not known.found.rows_failed


def _shown(value: str | None) -> str | None:
    """Return a text as it can be kept: Postgres has no NUL in JSON, and long ones help nobody."""
    if value is None:
        return None
    text = value.replace("\0", "␀")
    return text if len(text) <= 80 else text[:79] + "…"
