"""Gathers what is known of each dataset, and asks which of them gain from a flip."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakeward.control.counters import Counters
from lakeward.control.history import History
from lakeward.control.parity import ParityChecks
from lakeward.control.tree import DatasetRecord
from lakeward.migration.advising import DAYS, Advice, Facts, advise
from lakeward.migration.reading import READER
from lakeward.storage.extent import Extent, Measures
from lakeward.storage.facade import Storage
from lakeward.storage.table import table_ref
from lakeward.wiring.workspace import Workspace

_READS = re.compile(r'lakeward_reads_total\{arm="\w+",kind="(?P<kind>\w+)",reader="(?P<reader>[\w.]+)"\}')


def advices(workspace: Workspace) -> list[Advice]:
    """Return what to flip, by dataset. Looks at the ledger, at comparisons and at what arms say; reads no dataset.

    Datasets without a version, such as are mirrored and on their way already, and diverged ones are left out.
    """
    history, parity = History(workspace.database), ParityChecks(workspace.database)
    counted = Counters(workspace.database).of_datasets(int(DAYS))
    known = [
        _facts(record, history, parity, workspace.storage, _kinds(counted.get(record.id, {})))
        for record in workspace.tree.datasets()
    ]
    return [advice for facts in known if facts is not None and (advice := advise(facts)) is not None]


def _kinds(counted: Mapping[str, int]) -> dict[str, int]:
    """Return how often a dataset was read, by kind; what the canary of a flip has read is not among it."""
    found: dict[str, int] = {}
    for name, count in counted.items():
        match = _READS.fullmatch(name)
        if match is not None and match["reader"] != READER:
            found[match["kind"]] = found.get(match["kind"], 0) + count
    return found


def _facts(
    record: DatasetRecord, history: History, parity: ParityChecks, storage: Storage, kinds: Mapping[str, int]
) -> Facts | None:
    if not record.head_version or record.status == "diverged" or record.route.mirror_arm is not None:
        return None
    activity = history.activity(record.id, DAYS)
    tally = parity.tally(record.id, activity.since, ("postgres", "iceberg"))
    return Facts(
        record.name,
        record.arm,
        record.row_count,
        activity.days,
        activity.writes,
        activity.rows_written,
        _extent(record, storage),
        tally.reads,
        tally.seconds,
        kinds,
    )


def _extent(record: DatasetRecord, storage: Storage) -> Extent:
    """Return how large the head is on the arm that serves it, if that can say so."""
    place = storage.routing.resolve(record)
    if place is None or not isinstance(place.arm, Measures):
        return Extent()
    return place.arm.extent(table_ref(record), place.version)
