"""What would become of each column of a version on another arm, as it was found from the real values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.types.refusal import show

EXAMPLES = 5
"""A column of which so many values would not survive is not looked at any further."""


@dataclass(frozen=True)
class Example:
    """A value that would not survive: of which row, and why. `value` is cut short."""

    key: Mapping[str, str | None]
    value: str
    reason: str

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {"key": dict(self.key), "value": self.value, "reason": self.reason}

    def __str__(self) -> str:
        return f"{', '.join(f'{name}={value}' for name, value in self.key.items())}: {self.value} {self.reason}"


@dataclass
class ColumnCertificate:
    """What was looked at of one column, and what would become of it.

    Args:
        column, type: its name and logical type.
        here, there: what the arms keep it as.
        rows, nulls: how many were looked at; fewer than the dataset has once the column is refused.
        bounds: the smallest and the greatest value, of types that have an order.
        longest: bytes of the longest text or binary, or elements of the longest list.
        verdict: `lossless`; `lossy`: equal by digest, and not bit for bit; `refused`: the flip would fail.
        examples: of values that would not survive, at most `EXAMPLES` and then no further ones are looked for.
    """

    column: str
    type: str
    here: str
    there: str
    rows: int = 0
    nulls: int = 0
    bounds: tuple[pa.Scalar, pa.Scalar] | None = None
    longest: int | None = None
    verdict: str = "lossless"
    examples: list[Example] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        bounds = [show(bound) for bound in self.bounds] if self.bounds is not None else None
        return {**vars(self), "bounds": bounds, "examples": [example.to_json() for example in self.examples]}

    def saw(self, rows: int, nulls: int, bounds: tuple[pa.Scalar, pa.Scalar] | None, longest: int | None) -> None:
        """Note what was looked at of one batch."""
        self.rows += rows
        self.nulls += nulls
        if longest is not None:
            self.longest = max(self.longest or 0, longest)
        if bounds is not None:
            ends = pc.min_max(pa.concat_arrays([pa.repeat(end, 1) for end in (*bounds, *(self.bounds or ()))]))
            self.bounds = ends["min"], ends["max"]

    def against(self, verdict: str, example: Example) -> None:
        """Note a value that would not survive; a refusal outweighs a loss."""
        self.verdict = "refused" if "refused" in (verdict, self.verdict) else verdict
        self.examples.append(example)

    @property
    def range(self) -> str:
        """The bounds, or the greatest length, in words; nothing where there is neither."""
        if self.bounds is not None:
            return ", ".join(show(bound) for bound in self.bounds)
        unit = "elements" if self.type.startswith("list") else "bytes"
        return f"up to {self.longest:,} {unit}" if self.longest is not None else ""

    @property
    def closed(self) -> bool:
        """Whether enough is known of it."""
        return len(self.examples) >= EXAMPLES


@dataclass(frozen=True)
class Certificate:
    """What would become of a version's rows on another arm.

    Args:
        version: which one.
        rows: how many were read.
        bytes: of them in memory, as Arrow has them.
        columns: each column's part.
    """

    version: int
    rows: int
    bytes: int
    columns: tuple[ColumnCertificate, ...]

    @property
    def refused(self) -> tuple[ColumnCertificate, ...]:
        """The columns that keep the dataset from being flipped."""
        return tuple(column for column in self.columns if column.verdict == "refused")

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "columns": [column.to_json() for column in self.columns]}
