"""The two directions of a flip, and the modes that a dataset's route goes through in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeward.errors import UnknownObject


@dataclass(frozen=True)
class Direction:
    """One way between the arms.

    Args:
        source, to: the arms.
        alone: the mode before, where the source alone has the rows.
        mirrored: the source serves, and every write goes to the other arm, too.
        switched: the other way round.
        final: the other arm alone has the rows.
    """

    source: str
    to: str
    alone: str
    mirrored: str
    switched: str
    final: str

    @property
    def arms(self) -> tuple[str, str]:
        """Both arms, the one that the flip leaves first."""
        return (self.source, self.to)

    def other(self, primary: str) -> str:
        """Return the arm that does not serve, where `primary` does."""
        return self.source if primary == self.to else self.to


DIRECTIONS: Mapping[str, Direction] = {
    "iceberg": Direction("postgres", "iceberg", "pg", "dual", "iceberg_dual", "iceberg_native"),
    "postgres": Direction("iceberg", "postgres", "iceberg_native", "iceberg_dual", "dual", "pg"),
}
"""By the arm that a flip goes to."""


def direction_to(arm: str) -> Direction:
    """Return the direction of a flip to an arm.

    Raises:
        UnknownObject: no dataset can be flipped there.
    """
    if arm not in DIRECTIONS:
        raise UnknownObject(f"no dataset can be flipped to {arm!r}; there are {', '.join(DIRECTIONS)}", arm=arm)
    return DIRECTIONS[arm]
