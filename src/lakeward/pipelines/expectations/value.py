"""The expectation `value`: an aggregate within bounds, or near that of the version before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from lakeward.compute.aggregate import check_aggregate
from lakeward.compute.lasting import columns_of, merge_of
from lakeward.pipelines.expectation import (
    FAILED,
    NO_DATA,
    PASSED,
    VACUOUS,
    Expectation,
    FailOrPass,
    Found,
    Number,
    Scope,
    Verdict,
    check_sql,
    exact,
)
from lakeward.pipelines.known import Extent, Known
from lakeward.pipelines.origin import Origin, Path
from lakeward.types.logical import LogicalType

_FLOATS = ("float", "double")
_FLOATING = ("FLOAT", "DOUBLE")
_MOST_DIGITS = 38
_NUMBERS = ("int", "long", "decimal", *_FLOATS)


class Value(Expectation):
    """The aggregate `sql` is at least `min`, at most `max`, `equals` up to `tolerance`, and `within_of_previous`.

    The last is a share of the version before: 0.2 lets it differ by a fifth. Where there are no rows, or no values, to
    aggregate, `on_no_data` decides. A NaN fails whatever is asked of it.
    """

    name = "value"

    sql: str
    min: Number | None = None
    max: Number | None = None
    equals: Number | None = None
    tolerance: Number | None = None
    within_of_previous: Number | None = None
    on_no_data: FailOrPass = "fail"

    def checked(self, path: Path, origin: Origin) -> Expectation:
        """See `Expectation.checked`."""
        asked = (self.min, self.max, self.equals, self.within_of_previous)
        if all(each is None for each in asked):
            raise origin.error(
                "'value' needs 'min', 'max', 'equals' or 'within_of_previous'",
                path,
                next_step='write `value: {sql: "sum(amount)", min: 0}`',
            )
        if self.tolerance is not None and self.equals is None:
            raise origin.error(
                "'tolerance' goes with 'equals'", (*path, "tolerance"), next_step="add `equals`, or take it out"
            )
        for key in ("tolerance", "within_of_previous"):
            if (getattr(self, key) or 0) < 0:
                raise origin.error(
                    f"{key!r} is {getattr(self, key)}, and should be 0 or more",
                    (*path, key),
                    next_step=f"write `{key}: 0.1`: it is how far a value may be off, to both sides",
                )
        if self.min is not None and self.max is not None and self.min > self.max:
            raise origin.error(f"'min' {self.min} is more than 'max' {self.max}", path, next_step="exchange them")
        check_sql(self.sql, check_aggregate, (*path, "sql"), origin)
        return self

    def check_type(self, type_: LogicalType) -> str | None:
        """See `Expectation.check_type`."""
        if type_.kind not in _NUMBERS:
            return f"is {type_}, and should be a number"
        if type_.kind in _FLOATS and self.equals is not None and self.tolerance is None:
            return f"is {type_}, which `equals` needs a `tolerance` for; 0 if it is meant to the last bit"
        return None

    def describe(self) -> str:
        """See `Expectation.describe`."""
        parts = []
        if self.min is not None:
            parts.append(f"at least {self.min}")
        if self.max is not None:
            parts.append(f"at most {self.max}")
        if self.equals is not None:
            parts.append(f"{self.equals}" + (f" ± {self.tolerance}" if self.tolerance else ""))
        if self.within_of_previous is not None:
            parts.append(f"within {float(100 * exact(self.within_of_previous)):g} % of the version before")
        return f"{' '.join(self.sql.split())} is {', '.join(parts)}"

    def facts(self) -> dict[str, Any]:
        """See `Expectation.facts`."""
        return {**super().facts(), "sql": check_aggregate(self.sql)}

    def texts(self) -> Mapping[str, str]:
        """See `Expectation.texts`."""
        return {"sql": self.sql}

    def measures(self, scope: Scope) -> dict[str, str]:
        """See `Expectation.measures`."""
        return {"value": f"(\n{self.sql}\n)"}

    def extent(self, known: Known, scope: Scope) -> Extent:
        """See `Expectation.extent`. A sum of doubles depends on their order, so that only all of them give it."""
        if not known.only_adds or known.found is None or merge_of(self.sql) is None:
            return Extent.ALL
        kinds = [scope.schema.column(name).type.kind for name in columns_of(self.sql, scope.schema.names)]
        return Extent.ALL if any(kind in _FLOATS for kind in kinds) else Extent.NEW

    def new_measures(self, known: Known, scope: Scope) -> dict[str, str]:
        """See `Expectation.new_measures`."""
        return {**self.measures(scope), "type": f"typeof((\n{self.sql}\n))"}

    def whole(self, known: Known, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """See `Expectation.whole`. The engine adds integers and decimals exactly, as is done here."""
        assert known.found is not None, "else all rows are read"
        if values["type"] in _FLOATING:
            return None
        parts = [part for part in (known.found.observed, values["value"]) if part is not None]
        with localcontext(prec=2 * _MOST_DIGITS):
            merged = _merged(merge_of(self.sql), [Decimal(part) for part in parts])
        if merged is not None and len(merged.as_tuple().digits) > _MOST_DIGITS:
            # What no column holds is for the engine to refuse.
            return None
        return {"value": merged}

    def judge(self, found: Found) -> Verdict:
        """See `Expectation.judge`."""
        value = found.values["value"]
        if value is None:
            why = "no data, 0 rows" if not found.rows else f"no data in {found.rows:,} rows"
            passes = self.on_no_data == "pass"
            return Verdict(NO_DATA, f"{why}, which {'passes' if passes else 'fails'}", passes=passes)
        observed = repr(value) if isinstance(value, float) else str(value)
        if isinstance(value, float) and math.isnan(value):
            return Verdict(FAILED, "it is NaN", observed=observed)
        wrong = self._outside(value)
        if wrong is None and self.within_of_previous is not None:
            before = found.previous()
            if before is None:
                nothing = "there is no value of a version before"
                return Verdict(VACUOUS, f"it is {observed}; {nothing}", observed=observed)
            wrong = self._moved(value, before, exact(self.within_of_previous))
        if wrong is not None:
            return Verdict(FAILED, f"it is {observed}{wrong}", observed=observed)
        return Verdict(PASSED, f"it is {observed}", observed=observed)

    def _outside(self, value: float | Decimal) -> str | None:
        known = _exact(value)
        if self.min is not None and known < exact(self.min):
            return f", less than {self.min}"
        if self.max is not None and known > exact(self.max):
            return f", more than {self.max}"
        if self.equals is not None and not _near(known, exact(self.equals), exact(self.tolerance or 0)):
            return f", not {self.equals}" + (f" ± {self.tolerance}" if self.tolerance else "")
        return None

    def _moved(self, value: float | Decimal, before: str, share: Fraction) -> str | None:
        was = _exact(float(before)) if isinstance(value, float) else _exact(Decimal(before))
        if _near(_exact(value), was, share * abs(was) if isinstance(was, Fraction) else Fraction(0)):
            return None
        return f", and was {before} in the version before"


def _merged(merge: str | None, numbers: Sequence[Decimal]) -> Decimal | None:
    if not numbers:
        return None
    if merge == "sum":
        return sum(numbers[1:], numbers[0])
    return min(numbers) if merge == "min" else max(numbers)


def _exact(value: float | Decimal) -> Fraction | float:
    """Return a value as it is shown: of a double, the shortest text that stands for it. Infinities stay as they are."""
    return exact(value) if math.isfinite(value) else float(value)


def _near(one: Fraction | float, other: Fraction | float, most: Fraction) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return one == other
    return abs(one - other) <= most
