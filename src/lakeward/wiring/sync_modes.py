"""How a table of a source is synced: what is read of it, and by which verb it is written."""

from __future__ import annotations

from dataclasses import dataclass

from lakeward.errors import UnknownObject
from lakeward.sources.connector import CHANGED, FULL, NEW


@dataclass(frozen=True)
class SyncMode:
    """One way.

    Args:
        name: what it is called.
        about: what it does, for help and docs.
        what: is read: `FULL`, `CHANGED` or `NEW`.
        keyed: the verb for a dataset with a primary key.
        keyless: the verb for one without; None: it needs a key.
    """

    name: str
    about: str
    what: str
    keyed: str
    keyless: str | None

    @property
    def writer(self) -> str:
        """The name that its writes are recorded under, and that flags are set for."""
        return f"sync.{self.name}"

    @property
    def whole(self) -> bool:
        """Whether the dataset is afterwards what the table is."""
        return self.what == FULL

    def verb(self, keyed: bool) -> str | None:
        """Return the verb; None: it needs a key."""
        return self.keyed if keyed else self.keyless


MODES = {
    mode.name: mode
    for mode in (
        SyncMode("full", "every row; those that are gone are deleted", FULL, "mirror", "replace"),
        SyncMode("incremental", "rows that were written since, matched by the key", CHANGED, "upsert", None),
        SyncMode("append", "rows that are new, each once", NEW, "append_new", "append"),
    )
}
"""By name."""


def sync_mode(name: str) -> SyncMode:
    """Return the mode of that name.

    Raises:
        UnknownObject: there is none.
    """
    if name not in MODES:
        raise UnknownObject.among("sync mode", name, MODES, mode=name)
    return MODES[name]
