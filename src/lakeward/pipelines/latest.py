"""`churn@latest`: the newest version of a model when a build begins, one for the whole build, and recorded with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakeward.pipelines.fingerprint import with_models
from lakeward.pipelines.models.registered import ModelCatalog, latest_name
from lakeward.pipelines.nodes import FitNode, ModelNode
from lakeward.pipelines.spec import Pipeline


@dataclass(frozen=True)
class Pinned:
    """A pipeline that names a version of every model.

    Args:
        pipeline: with `churn@3` for `churn@latest`.
        fingerprint: the one that it was applied with, and the versions that were found.
        missing: models that have no version yet; their nodes stay as they are written.
    """

    pipeline: Pipeline
    fingerprint: str
    missing: Sequence[str] = ()


def latest_models(pipeline: Pipeline) -> list[str]:
    """Return the names of the models of which a pipeline uses the newest version."""
    nodes = pipeline.spec.nodes.values()
    names = [latest_name(node.model.model) for node in nodes if isinstance(node, ModelNode)]
    return sorted({name for name in names if name is not None})


def fitted_models(pipeline: Pipeline) -> dict[str, str]:
    """Return the name of the model that each fit node makes, by the node's name."""
    return {name: node.fit.model for name, node in pipeline.spec.nodes.items() if isinstance(node, FitNode)}


def model_key(name: str) -> str:
    """Return what a model is called among the keys of datasets: their names have no colon in front."""
    return f":{name}"


def pinned(pipeline: Pipeline, fingerprint: str, models: ModelCatalog) -> Pinned:
    """Return a pipeline with the newest version of each model that is `@latest` in it.

    Args:
        pipeline: as it was applied.
        fingerprint: its own, as it was applied.
        models: where versions are looked up.
    """
    names = latest_models(pipeline)
    if not names:
        return Pinned(pipeline, fingerprint)
    newest = {name: versions[-1].reference for name in names if (versions := models.versions(name))}
    nodes = {}
    for name, node in pipeline.spec.nodes.items():
        found = newest.get(latest_name(node.model.model) or "") if isinstance(node, ModelNode) else None
        if isinstance(node, ModelNode) and found is not None:
            node = node.model_copy(update={"model": node.model.model_copy(update={"model": found})})
        nodes[name] = node
    spec = pipeline.spec.model_copy(update={"nodes": nodes})
    missing = [name for name in names if name not in newest]
    return Pinned(replace(pipeline, spec=spec), with_models(fingerprint, list(newest.values())), missing)
