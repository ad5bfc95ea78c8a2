"""The expectation `row_count`: how many rows there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeward.pipelines.expectation import FAILED, PASSED, Expectation, Found, Scope, Verdict
from lakeward.pipelines.known import Extent, Known
from lakeward.pipelines.origin import Origin, Path


class RowCount(Expectation):
    """The version has at least `min` and at most `max` rows."""

    name = "row_count"

    min: int | None = None
    max: int | None = None

    def checked(self, path: Path, origin: Origin) -> Expectation:
        """See `Expectation.checked`."""
        if self.min is None and self.max is None:
            raise origin.error("'row_count' needs 'min' or 'max'", path, next_step="write `row_count: {min: 1}`")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise origin.error(f"'min' {self.min} is more than 'max' {self.max}", path, next_step="exchange them")
        return self

    def describe(self) -> str:
        """See `Expectation.describe`."""
        if self.max is None:
            return f"at least {self.min:,} rows"
        return f"at most {self.max:,} rows" if self.min is None else f"{self.min:,} to {self.max:,} rows"

    def extent(self, known: Known, scope: Scope) -> Extent:
        """See `Expectation.extent`."""
        return Extent.NONE

    def whole(self, known: Known, values: Mapping[str, Any]) -> dict[str, Any]:
        """See `Expectation.whole`: no more than the number of rows, which the write counted."""
        return {}

    def judge(self, found: Found) -> Verdict:
        """See `Expectation.judge`."""
        low = self.min is None or found.rows >= self.min
        held = low and (self.max is None or found.rows <= self.max)
        return Verdict(PASSED if held else FAILED, f"there are {found.rows:,} rows", 0, str(found.rows))
