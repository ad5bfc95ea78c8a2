"""The arms of a workspace, each made when it is first needed: importing one takes longer than most commands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping

from lakeward.storage.arm import ArmContext, StorageArm


class MadeArms(Mapping[str, StorageArm]):
    """Arms by name. For all threads.

    Args:
        context: what each is made with.
        kinds: by name, what imports and returns an arm's class.
    """

    def __init__(self, context: ArmContext, kinds: Mapping[str, Callable[[], type[StorageArm]]]) -> None:
        self._context = context
        self._kinds = kinds
        self._lock = threading.Lock()
        self._made: dict[str, StorageArm] = {}

    def __getitem__(self, name: str) -> StorageArm:
        made = self._made.get(name)
        if made is not None:
            return made
        kind = self._kinds[name]
        with self._lock:
            if name not in self._made:
                self._made[name] = kind()(self._context)
            return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def close(self) -> None:
        """Close those that were made."""
        for made in self._made.values():
            made.close()
