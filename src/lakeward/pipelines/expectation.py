"""What an expectation is: a promise about an output's rows, judged on the prepared version before anybody sees it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import PlainValidator
from pydantic_core import PydanticCustomError

from lakeward.compute.place import line_and_column, sql_error
from lakeward.errors import LakewardError, SqlError
from lakeward.pipelines.known import Extent, Known
from lakeward.pipelines.nodes import SpecModel
from lakeward.pipelines.origin import Origin, Path
from lakeward.types.logical import LogicalType
from lakeward.types.schema import Schema

ROWS = "rows"
"""What SQL calls the rows that are judged."""

MET = '"met\x01"'
"""What SQL calls the column of new rows that says whether the version before has their key; no column has this name."""

PASSED, VACUOUS, NO_DATA, FAILED = "passed", "vacuous", "no data", "failed"

FAIL, WARN, QUARANTINE = "fail", "warn", "quarantine"

Refuse = Callable[[str, Path, str], LakewardError]


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("number_type", "a number")
    return value


def _share(value: Any) -> Any:
    if not 0 <= _number(value) <= 1:
        raise PydanticCustomError("share_type", "a share between 0 and 1, as in 0.95")
    return value


def _on_fail(value: Any) -> Any:
    if value not in (FAIL, WARN, QUARANTINE):
        raise PydanticCustomError("on_fail_type", "fail, warn or quarantine")
    return value


def _choice(value: Any) -> Any:
    if value not in ("fail", "pass"):
        raise PydanticCustomError("choice_type", "fail or pass")
    return value


Number = Annotated[int | float, PlainValidator(_number)]
Share = Annotated[int | float, PlainValidator(_share)]
OnFail = Annotated[str, PlainValidator(_on_fail)]
FailOrPass = Annotated[str, PlainValidator(_choice)]


def check_sql(text: str, check: Callable[[str], str], path: Path, origin: Origin) -> None:
    """Check a user's own SQL in an expectation.

    Args:
        text: the SQL.
        check: raises what is wrong with it.
        path: where it is.
        origin: of the spec.

    Raises:
        SqlError: with file and line in front.
    """
    try:
        check(text)
    except SqlError as error:
        raise located_sql(error, text, path, origin) from None


def located_sql(error: SqlError, text: str, path: Path, origin: Origin, before: int = 0) -> SqlError:
    """Return an error in an expectation's SQL with the file and line in front, and the excerpt of the user's own text.

    Args:
        error: its position is in the text that was run.
        text: the user's own.
        path: where that is.
        origin: of the spec.
        before: so many characters of the text that was run are ours, before the user's own.
    """
    position = error.fields.get("position")
    position = position - before if isinstance(position, int) and 0 <= position - before <= len(text) else None
    place = origin.place(path)
    first = place.text_line if place else 1
    line = first + line_and_column(text, position or 0)[0] - 1 if place else None
    where = f"{origin.file}:{line}: expectation" if place else f"{origin.file}: expectation"
    reason = str(error.fields.get("reason") or error.message)
    located = sql_error(reason, text, position, where=where, first_line=first, next_step=error.next_step)
    located.fields.update({**error.fields, **located.fields, "file": origin.file, "line": line})
    return located


def exact(number: float | Decimal) -> Fraction:
    """Return a number of a spec as it is written: 0.2 is a fifth, not the double next to it."""
    return Fraction(str(number))


@dataclass(frozen=True)
class Scope:
    """What an expectation's SQL is about.

    Args:
        schema: of the output: its columns and key.
        others: what SQL calls each other dataset that expectations read, by the dataset's name.
        schemas: of those, by name.
    """

    schema: Schema
    others: Mapping[str, str]
    schemas: Mapping[str, Schema]


@dataclass(frozen=True)
class Found:
    """What the rows gave.

    Args:
        rows: how many there are.
        values: of the expectation's own measures.
        previous: finds the value of the version before; None: there is none.
    """

    rows: int
    values: Mapping[str, Any]
    previous: Callable[[], str | None]


@dataclass(frozen=True)
class Verdict:
    """What came of it. `observed` is an exact text."""

    outcome: str
    message: str
    rows_failed: int = 0
    observed: str | None = None
    passes: bool = False
    """It is not as expected, and was declared to be no reason to stop."""

    @property
    def bad(self) -> bool:
        """Whether it is a reason to stop."""
        return self.outcome in (NO_DATA, FAILED) and not self.passes


class Expectation(SpecModel, ABC):
    """One kind of expectation. To add one, add a file to `expectations/`; its docstring is its help."""

    name: ClassVar[str]
    meets: ClassVar[bool] = False
    """Whether `new_measures` reads `MET`. They are asked only if no two rows had the same key before."""
    bare: ClassVar[str | None] = None
    """The key that a value stands for which is no mapping, as in `not_null: [id]`."""
    alone: ClassVar[bool] = False
    """Whether its name alone is enough."""
    of_rows: ClassVar[bool] = False
    """Whether it is about rows, so that there is nothing to judge where a build has none for the output."""
    judges_rows: ClassVar[bool] = False
    """Whether each row holds or fails by itself, so that bad ones can be told from good ones."""

    on_fail: OnFail = FAIL

    @property
    def reads(self) -> str | None:
        """The other dataset that it reads, if any."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """Return what is expected, for people."""

    def definition(self) -> str:
        """Return one form of all that the judgement depends on."""
        return json.dumps([self.name, self.facts()], sort_keys=True, ensure_ascii=False)

    def facts(self) -> dict[str, Any]:
        """Return its keys and values; SQL in its one rendering."""
        return self.model_dump(exclude={"on_fail"})

    def checked(self, path: Path, origin: Origin) -> Expectation:
        """Refuse what its keys say together, where that makes no sense. Returns it with values in their one form."""
        return self

    def check_columns(self, scope: Scope, path: Path, refuse: Refuse) -> None:
        """Refuse columns that are not there, or of the wrong type.

        Args:
            scope: the output's columns, and those of the other datasets.
            path: of the expectation's own keys.
            refuse: makes the error from what is wrong, its place and the next step.
        """

    def texts(self) -> Mapping[str, str]:
        """Return the users' own SQL in it, by key."""
        return {}

    def check_type(self, type_: LogicalType) -> str | None:
        """Return what is wrong with the type that the user's own SQL has, as the end of a sentence; None: nothing."""
        return None

    def warnings(self) -> list[str]:
        """Return what is likely to be meant otherwise."""
        return []

    def measures(self, scope: Scope) -> dict[str, str]:
        """Return aggregates over the rows, which one pass computes for all expectations."""
        return {}

    def query(self, scope: Scope) -> str | None:
        """Return a query of its own that gives one row of measures, where aggregates over the rows are not enough."""
        return None

    # Where only what is new is read. What comes of it has to be what all rows would give, to the letter.

    def extent(self, known: Known, scope: Scope) -> Extent:
        """Return which rows have to be read, given what is known."""
        return Extent.ALL

    def new_measures(self, known: Known, scope: Scope) -> dict[str, str]:
        """Return aggregates over the new rows, of which `MET` says whether the version before has their key."""
        return self.measures(scope)

    def whole(self, known: Known, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the measures of all rows, given those of the new ones, or none; None: it can't be told."""
        return None

    @abstractmethod
    def judge(self, found: Found) -> Verdict:
        """Return what the measures mean."""

    def failing(self, scope: Scope) -> str | None:
        """Return a query of the rows that fail, with some of their columns; None: no row does."""
        return None


class RowExpectation(Expectation):
    """Base of those that judge each row by itself.

    `at_least` is the share of rows that has to hold; `nulls` says whether a row holds of which that is unknown.
    """

    of_rows = True
    judges_rows = True

    at_least: Share = 1

    @abstractmethod
    def holds(self, scope: Scope) -> str:
        """Return SQL that is true or false, never null, for a row of `ROWS`."""

    @property
    def lasting(self) -> bool:
        """Whether a row that held once holds for ever, as long as it is not changed."""
        return True

    def measures(self, scope: Scope) -> dict[str, str]:
        """See `Expectation.measures`."""
        return {"failed": f"count(*) FILTER (WHERE NOT ({self.holds(scope)}))"}

    def extent(self, known: Known, scope: Scope) -> Extent:
        """See `Expectation.extent`. Which of the rows that are gone had failed, nobody knows, unless none had."""
        if not self.lasting or known.found is None:
            return Extent.ALL
        return Extent.NEW if known.only_adds or not known.found.rows_failed else Extent.ALL

    def whole(self, known: Known, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """See `Expectation.whole`."""
        assert known.found is not None, "else all rows are read"
        return {"failed": int(values["failed"]) + known.found.rows_failed}

    def judge(self, found: Found) -> Verdict:
        """See `Expectation.judge`. Counts are compared, not shares, which would have to be rounded."""
        if not found.rows:
            return Verdict(VACUOUS, "vacuous, 0 rows")
        failed = int(found.values["failed"])
        share = exact(self.at_least)
        if failed <= found.rows * (1 - share):
            return Verdict(PASSED, f"{failed:,} of {found.rows:,} rows fail" if failed else "all rows hold", failed)
        allowed = f", and at least {float(share):g} of them have to hold" if share < 1 else ""
        return Verdict(FAILED, f"{failed:,} of {found.rows:,} rows fail{allowed}", failed)

    def failing(self, scope: Scope) -> str | None:
        """See `Expectation.failing`."""
        return f"SELECT * FROM {ROWS} WHERE NOT ({self.holds(scope)})"
