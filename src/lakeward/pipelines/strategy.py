"""What a strategy decides: how a pipeline output turns the rows that were computed into a write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar


class Strategy(ABC):
    """One way to materialise an output. To add one, add a file to `strategies/`; its docstring is its help."""

    name: ClassVar[str]
    needs_key: ClassVar[bool] = False
    """Whether the output has to declare a primary key."""

    @abstractmethod
    def verb(self, *, first: bool) -> str:
        """Return the storage verb of a build.

        Args:
            first: whether the output has no committed version yet, by the ledger (never by counting rows).
        """
