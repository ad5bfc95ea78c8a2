"""The parts of a workspace that its datasets use."""

from __future__ import annotations

from dataclasses import dataclass

from lakeward.control.db import Database
from lakeward.control.ledger import Ledger
from lakeward.control.retention import Retention
from lakeward.control.table_places import TablePlaces
from lakeward.control.tree import Tree
from lakeward.storage.facade import Storage
from lakeward.storage.foreign import Foreign
from lakeward.storage.replication import Replication
from lakeward.wiring.expecting import Expecting
from lakeward.wiring.exporting import Exporting
from lakeward.wiring.parts import Parts


@dataclass(frozen=True)
class Rooms:
    """The parts of a workspace that its datasets use."""

    database: Database
    tree: Tree
    ledger: Ledger
    storage: Storage
    replication: Replication
    foreign: Foreign
    retention: Retention
    exporting: Exporting
    places: TablePlaces
    expecting: Expecting

    @classmethod
    def of(cls, parts: Parts) -> Rooms:
        """Take them from those of a workspace."""
        return cls(
            parts.database,
            parts.tree,
            parts.ledger,
            parts.storage,
            parts.replication,
            parts.foreign,
            parts.retention,
            Exporting(parts.storage),
            parts.moves.places,
            parts.expecting,
        )
