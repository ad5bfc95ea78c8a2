"""The part of a `Dataset` about what its rows have to be: what is declared of it, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lakeward.control.expectation_results import ExpectationResults, JudgedVersion
from lakeward.wiring.actor import actor
from lakeward.wiring.expecting import Declaration
from lakeward.wiring.rooms import Rooms


class JudgedDataset:
    """What a dataset is expected to be, and was found to be."""

    _rooms: Rooms
    _id: int

    def expect(self, what: Sequence[Any] | str | Path, dry_run: bool = False) -> Declaration:
        """Declare what its rows have to be, whoever writes them: every later version is judged before it is visible.

        Args:
            what: a list like the one of a pipeline's output, or a YAML file that has it; an empty list: nothing.
            dry_run: check it, and change nothing.

        Raises:
            SpecError, SqlError: one of them can't be meant. Nothing was changed.

        Example:
            >>> orders.expect(["primary_key", {"row": {"check": "id > 0", "on_fail": "warn"}}]).changed
            True
            >>> orders.expected()
            ['primary_key', {'row': {'check': 'id > 0', 'on_fail': 'warn'}}]
        """
        return self._rooms.expecting.declare(self._rooms.tree.by_id(self._id), what, actor(), dry_run=dry_run)

    def expected(self) -> list[Any]:
        """Return what was declared by `expect`."""
        return self._rooms.expecting.declared.of(self._id)

    def expectations(self, version: int | None = None, most: int = 20) -> list[JudgedVersion]:
        """Return what was found in its versions, newest first, also in those that were refused.

        Args:
            version: in this one only.
            most: in at most so many.

        Example:
            >>> [(each.version, each.status) for each in orders.expectations()]
            []
        """
        return ExpectationResults(self._rooms.database).judged(self._id, version=version, most=most)
