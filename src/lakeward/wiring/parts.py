"""The rooms of an open workspace, as `open_workspace` puts them together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lakeward.control.counters import Counting
from lakeward.control.db import Database
from lakeward.control.ledger import Ledger
from lakeward.control.retention import Retention
from lakeward.control.tree import Tree
from lakeward.migration.moves.sweep import Sweep
from lakeward.migration.stage import Rooms as FlipRooms
from lakeward.pipelines.ad_hoc import AdHoc
from lakeward.pipelines.models.registry import Models
from lakeward.pipelines.service import Pipelines
from lakeward.storage.adopting import Adopting
from lakeward.storage.facade import Storage
from lakeward.storage.foreign import Foreign
from lakeward.storage.moving import Moving
from lakeward.storage.recovery import Recovery
from lakeward.storage.replication import Replication
from lakeward.wiring.expecting import Expecting
from lakeward.wiring.flags import Flags
from lakeward.wiring.following import FollowedSources
from lakeward.wiring.settings import LoadedSettings
from lakeward.wiring.tree import TreeRooms
from lakeward.wiring.upkeep import Upkeep


@dataclass(frozen=True)
class Parts:
    """What a `Workspace` is a handle of."""

    settings: LoadedSettings
    database: Database
    tree: Tree
    ledger: Ledger
    storage: Storage
    replication: Replication
    moving: Moving
    moves: Sweep
    flags: Flags
    flips: FlipRooms
    adopting: Adopting
    foreign: Foreign
    recovery: Recovery
    retention: Retention
    expecting: Expecting
    upkeep: Upkeep
    pipelines: Pipelines
    queries: AdHoc
    names: TreeRooms
    models: Models
    metrics: Counting
    sources: FollowedSources
    scratch: Path
