"""Puts the flips of many datasets together: their records, and what the applied pipelines read and write."""

from __future__ import annotations

from collections.abc import Callable

from lakeward.control.tree import DatasetRecord, Tree
from lakeward.migration.bulk import BulkFlip
from lakeward.migration.flip import Flip
from lakeward.pipelines.service import Pipelines


def bulk_flip(tree: Tree, pipelines: Pipelines, flip: Callable[[DatasetRecord], Flip]) -> BulkFlip:
    """Return what flips many datasets of a workspace.

    Args:
        tree: names of datasets.
        pipelines: the applied ones say what is made from what.
        flip: makes the flip of one dataset.
    """
    applied = [each.pipeline for each in pipelines.registry.applied().values() if each.pipeline is not None]
    edges = [
        (source, output.dataset)
        for pipeline in applied
        for source in pipeline.sources.values()
        for output in pipeline.spec.outputs
    ]
    return BulkFlip(tree.datasets(), edges, flip)
