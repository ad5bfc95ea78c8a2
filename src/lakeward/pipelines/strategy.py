"""What a strategy decides: how a pipeline output turns the rows that were computed into a write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar


class Strategy(ABC):
    """One way to materialise an output. To add one, add a file to `strategies/`; its docstring is its help."""

    name: ClassVar[str]
    needs_key: ClassVar[bool] = False
    """Whether the output has to declare a primary key."""
    takes_delta: ClassVar[bool] = False
    """Whether the rows that are new in the sources are enough for it."""
    takes_updates: ClassVar[bool] = False
    """Whether it may get a row again that was updated since: it matches rows by their key."""

    @abstractmethod
    def verb(self, *, rebuild: bool) -> str:
        """Return the storage verb of a build.

        The first build has the same one as later ones: what a keyed verb refuses, it refuses from the start.

        Args:
            rebuild: whether everything is computed although the output was built before; False: it is the first build,
                or a delta.
        """
