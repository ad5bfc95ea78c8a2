"""Roles, from the one that may least to the one that may all."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """What somebody may do somewhere; each may also do what those before it may."""

    VIEWER = 1
    """Reads rows, and all that is told of them."""
    BUILDER = 2
    """Writes rows, makes datasets and pipelines, and runs them."""
    OPERATOR = 3
    """Flips, moves and drops datasets, sets flags, and looks after the workspace."""
    ADMIN = 4
    """Says who may do what."""

    def __str__(self) -> str:
        return self.name.lower()
