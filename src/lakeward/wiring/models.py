"""The part of a workspace's handle about registered models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lakeward.pipelines.models.declaring import declare_model
from lakeward.pipelines.models.permit import Permit
from lakeward.pipelines.models.registered import ModelVersion
from lakeward.pipelines.models.registry import Added, Models, is_function
from lakeward.pipelines.project import find_project
from lakeward.wiring.actor import actor


class ModelsByName:
    """The part of a `Workspace` about models."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def add_model(
        self,
        what: str | Path,
        name: str,
        features: Sequence[str] | Mapping[str, str] = (),
        outputs: Sequence[str] = (),
        project: str | Path = ".",
        *,
        format: str | None = None,
        allow_pickle: bool = False,
        sha256: str | None = None,
    ) -> Added:
        """Register a model as the next version of its name. The very same again adds nothing; nothing of it is run.

        Args:
            what: an ONNX file, or `module:function`, a function in a file of the project's folder `models/`.
            name: of the model.
            features: their names in the model's order; for a function a mapping of names to types.
            outputs: `risk=probabilities[1]` for a column of an output of an ONNX file, `risk:double` for a function;
                none: all that the file tells.
            project: its folder, or one inside it.
            format, allow_pickle: `pickle` and True for a pickle, which runs whatever it says when a build loads it; it
                needs its hash, too.
            sha256: what the file's hash has to be, in hexadecimal.

        Raises:
            ModelRefused: the file is no model, whatever its name says, or not as declared.
        """
        declared, permit = declare_model(features, outputs), Permit(format, allow_pickle, sha256)
        folder = find_project(Path(project)) if is_function(str(what)) else Path(project)
        return self._models.add(str(what), name=name, declared=declared, project=folder, actor=actor(), permit=permit)

    def models(self, name: str | None = None) -> list[ModelVersion]:
        """Return the versions of a model, oldest first; of all models, if no name is given."""
        return self._models.versions(name)

    def model(self, reference: str) -> ModelVersion:
        """Return the version that `churn@3` names, or the newest of `churn`.

        Raises:
            UnknownObject: there is none.
        """
        return self._models.find(reference)
