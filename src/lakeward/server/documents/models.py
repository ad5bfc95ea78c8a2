"""Registered models."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lakeward.server.documents.document import Document, example

MODEL: dict[str, Any] = {
    "name": "churn",
    "version": 3,
    "reference": "churn@3",
    "format": "onnx",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "size": 1482,
    "entry": "",
    "origin": "churn.onnx",
    "added_at": "2026-12-01T06:00:00+00:00",
    "added_by": "ana",
    "build_id": None,
    "datasets": [],
    "features": [{"name": "amount", "type": "double"}],
    "outputs": [{"name": "risk", "type": "double", "tensor": "probabilities", "column": 1}],
}


class Model(Document):
    """A version of a model. It never changes."""

    model_config = example(**MODEL)

    name: str
    version: int
    reference: str = Field(description="how a node of a pipeline names it")
    format: str
    sha256: str
    size: int = Field(description="in bytes")
    entry: str
    origin: str = Field(description="where the file was, for people")
    added_at: datetime
    added_by: str
    build_id: str | None = Field(description="the build that made it; null: it was added by hand")
    datasets: list[str]
    features: list[dict[str, Any]]
    outputs: list[dict[str, Any]]


class ModelList(Document):
    """Versions of models, oldest first of each."""

    model_config = example(models=[MODEL])

    models: list[Model]


class ModelAdded(Model):
    """The version that a file is."""

    model_config = example(**MODEL, new=True)

    new: bool = Field(description="false: this very model was there already")
