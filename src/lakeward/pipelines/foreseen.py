"""Models that a project is yet to fit: what they will take and give, so that a plan can check who uses them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from lakeward.pipelines.compile import Compiler
from lakeward.pipelines.graph import Graph
from lakeward.pipelines.models.registered import ModelCatalog, ModelVersion, Signature
from lakeward.pipelines.nodes import FitNode
from lakeward.pipelines.stages.fit import FitStage


class ForeseenModels:
    """A catalog of models that also knows those that are yet to be fitted.

    A version that is there counts as long as the next one will take the same: it tells more than can be foreseen.

    Args:
        models: those that are there.
    """

    def __init__(self, models: ModelCatalog) -> None:
        self._models = models
        self._foreseen: dict[str, ModelVersion] = {}

    def foresee(self, signatures: Mapping[str, Signature]) -> None:
        """Add models by name, with what they will take and give."""
        for name, signature in signatures.items():
            there = self._models.versions(name)
            if not there or there[-1].signature.features != signature.features:
                number = there[-1].version + 1 if there else 1
                self._foreseen[name] = _version(name, number, signature)

    def versions(self, name: str | None = None) -> list[ModelVersion]:
        """See `ModelCatalog.versions`."""
        foreseen = [each for each in self._foreseen.values() if name in (None, each.name)]
        return [*self._models.versions(name), *foreseen]


def fitted_signatures(graph: Graph, compiler: Compiler) -> dict[str, Signature]:
    """Return what the models that a pipeline fits will take and give, as far as it can be told, by their names."""
    found = {}
    for name, node in graph.pipeline.spec.nodes.items():
        if isinstance(node, FitNode) and name not in graph.unused:
            stage = compiler.stage(name)
            assert isinstance(stage, FitStage)
            found[node.fit.model] = stage.signature
    return found


def _version(name: str, number: int, signature: Signature) -> ModelVersion:
    return ModelVersion(name, number, "onnx", "", 0, "", "", signature, datetime.now(UTC), "")
