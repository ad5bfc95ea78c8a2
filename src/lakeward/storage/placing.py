"""Says how an engine can read rows where they lie: for several reads at a time, so that few questions are asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from lakeward.control.tree import DatasetRecord, Tree
from lakeward.in_place import InPlace
from lakeward.storage.arm import Scan, StorageArm
from lakeward.storage.requests import ReadRequest
from lakeward.storage.routing import Chosen, Routing
from lakeward.storage.scans import kind_of, scan_of
from lakeward.storage.table import table_ref


@dataclass(frozen=True)
class _Read:
    """One of the reads: its number among them, the dataset as it is now, what is read, and where that is."""

    number: int
    dataset: DatasetRecord
    scan: Scan
    chosen: Chosen


def placed(
    tree: Tree, routing: Routing, reads: Sequence[tuple[DatasetRecord, ReadRequest]], reader: str
) -> list[InPlace | None]:
    """Return how the rows of each read can be read in place; None where they have to be streamed.

    Args:
        tree, routing: of the workspace.
        reads: which datasets, as they were at some earlier moment, and which rows and columns.
        reader: the named place in the product that reads.

    Raises:
        SchemaError, UnknownVersion, ArmNotCurrent: see `Storage.read`.
    """
    by_arm: dict[StorageArm, list[_Read]] = defaultdict(list)
    for each in _chosen(tree, routing, reads, reader):
        # What is compared with another arm is streamed.
        if each.chosen.place is not None and not each.chosen.shadow:
            by_arm[each.chosen.place.arm].append(each)
    found: list[InPlace | None] = [None] * len(reads)
    for arm, wanted in by_arm.items():
        versions = [each.chosen.place.version for each in wanted if each.chosen.place is not None]
        scans = [(table_ref(each.dataset), version, each.scan) for each, version in zip(wanted, versions, strict=True)]
        for each, place in zip(wanted, arm.in_place(scans), strict=True):
            found[each.number] = place
            if place is not None:
                routing.told(each.dataset, each.chosen, kind_of(each.dataset, each.scan))
    return found


def _chosen(
    tree: Tree, routing: Routing, reads: Sequence[tuple[DatasetRecord, ReadRequest]], reader: str
) -> list[_Read]:
    """Return the reads that an arm with files is to answer, and where each goes."""
    filed = [
        (number, dataset, request)
        for number, (dataset, request) in enumerate(reads)
        if routing.preferred(dataset, reader, request.arm).has_files
    ]
    if not filed:
        return []
    datasets = tree.by_ids([dataset.id for _, dataset, _ in filed])
    scans = [scan_of(dataset, request) for dataset, (_, _, request) in zip(datasets, filed, strict=True)]
    asked = [(dataset, request.arm, request.version) for dataset, (_, _, request) in zip(datasets, filed, strict=True)]
    chosen = routing.choose_each(asked, reader)
    numbers = [number for number, _, _ in filed]
    return [_Read(*each) for each in zip(numbers, datasets, scans, chosen, strict=True)]
