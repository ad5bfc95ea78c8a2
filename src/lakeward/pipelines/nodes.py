"""The kinds of node. To add one, add its model here; the rooms that read a graph ask a node for its `inputs`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class SpecModel(BaseModel):
    """Base of everything in a spec: unknown keys are refused, values are what they look like, nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class SourceNode(SpecModel):
    """Reads a dataset."""

    kind: ClassVar[str] = "source"
    source: str


class TransformNode(SpecModel):
    """One SQL query over other nodes, read by their names."""

    kind: ClassVar[str] = "transform"
    transform: str


Node = SourceNode | TransformNode

NODES: tuple[type[SourceNode] | type[TransformNode], ...] = (SourceNode, TransformNode)
"""Every kind of node, in the order of the documentation."""
