"""How the changes of a followed table are written: the dataset equals the table, or each change is a row of it."""

from __future__ import annotations

from dataclasses import dataclass

from lakeward.errors import UnknownObject
from lakeward.sources.connector import FULL, SourceColumn
from lakeward.wiring.sync_modes import SyncMode

LOG_COLUMNS = (
    SourceColumn("_op", "text", "string"),
    SourceColumn("_commit", "bigint", "long"),
    SourceColumn("_ordinal", "bigint", "long"),
    SourceColumn("_committed_at", "timestamptz", "timestamptz"),
    SourceColumn("_unchanged", "text[]", "list<string>"),
)
"""What a row that is a change has besides the columns of its table, in the order of `CHANGE_COLUMNS`."""

COPY = "copy"
"""The `_op` of a row that was there when following began; the other columns of `LOG_COLUMNS` are null."""


@dataclass(frozen=True)
class FollowMode(SyncMode):
    """One way; the verbs are those of the first copy.

    Args:
        log: whether each change is a row.
    """

    log: bool = False

    @property
    def writer(self) -> str:
        """The name that its writes are recorded under, and that flags are set for."""
        return f"cdc.{self.name}"


FOLLOW_MODES = {
    mode.name: mode
    for mode in (
        FollowMode("changes", "the dataset equals the table, which needs a key", FULL, "mirror", None),
        FollowMode("append", "each change is a row", FULL, "append", "append", log=True),
    )
}
"""By name."""


def follow_mode(name: str) -> FollowMode:
    """Return the mode of that name.

    Raises:
        UnknownObject: there is none.
    """
    if name not in FOLLOW_MODES:
        raise UnknownObject(f"unknown mode {name!r}; there are {', '.join(FOLLOW_MODES)}", mode=name)
    return FOLLOW_MODES[name]
