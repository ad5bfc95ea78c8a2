"""The datasets of one pipeline: what it reads, and what it writes as far as that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lakeward.control.tree import DatasetRecord, Tree
from lakeward.pipelines.graph import Graph
from lakeward.pipelines.spec import Pipeline


@dataclass(frozen=True)
class Datasets:
    """The datasets of a pipeline, by name, as they are when a build of it begins.

    Args:
        sources: what it reads.
        outputs: those that it writes which were made before.
    """

    sources: Mapping[str, DatasetRecord]
    outputs: Mapping[str, DatasetRecord]


def datasets_of(tree: Tree, pipeline: Pipeline) -> Datasets:
    """Look up the datasets of a pipeline, all of them in one question.

    Raises:
        UnknownObject: a source does not exist.
    """
    read, written = list(pipeline.sources.values()), [output.dataset for output in pipeline.spec.outputs]
    found = tree.find_each([*read, *written])
    sources = {name: found[name] if name in found else tree.dataset(name) for name in read}
    return Datasets(sources, {name: found[name] for name in written if name in found})


class Builds(Protocol):
    """What builds the pipelines of a workspace."""

    @property
    def tree(self) -> Tree:
        """Of the workspace."""


def about_build(
    builder: Builds, graph: Graph, fingerprint: str | None, datasets: Datasets, versions: Mapping[int, int], **_: object
) -> dict[str, object]:
    """Return what is told of a build: see `lakeward.happenings`."""
    return {
        "tree": builder.tree,
        "pipeline": graph.pipeline.name,
        "one_off": fingerprint is None,
        "inputs": {name: versions[record.id] for name, record in datasets.sources.items()},
        "outputs": tuple(output.dataset for output in graph.pipeline.spec.outputs),
    }
