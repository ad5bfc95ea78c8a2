"""Models: listed, shown, and added by a file that a request brings."""

from __future__ import annotations

import shutil
from pathlib import Path as FilePath
from pathlib import PurePath
from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import File, Form, Path, Query, UploadFile

from lakeward.errors import LakewardError, NotAllowed
from lakeward.server.documents.models import Model, ModelAdded, ModelList
from lakeward.server.hiding import hide
from lakeward.server.queueing import waited
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.rules import needs

router = noun("models")

READ = needs("model.read")

LONGEST_NAME = 100


@router.get("/models", summary="List models", dependencies=[READ])
def list_models(
    rooms: Here, model: Annotated[str | None, Query(description="the versions of this one only")] = None
) -> ModelList:
    """The versions of a model, oldest first; of all models, if none is named."""
    return ModelList(models=[Model.of(each) for each in rooms.workspace.models(model)])


@router.get("/models/{reference:path}", summary="Show a model", dependencies=[READ])
def show_model(
    rooms: Here, reference: Annotated[str, Path(description="churn@3, or churn: the newest", examples=["churn@3"])]
) -> Model:
    """What it takes and gives, and where it came from."""
    return Model.of(rooms.workspace.model(reference))


@router.post("/models", summary="Add a model", dependencies=[needs("model.add")])
def add_model(
    rooms: Here,
    file: Annotated[UploadFile, File(description="an ONNX file, or a pickle")],
    name: Annotated[str, Form(description="of the model", examples=["churn"])],
    feature: Annotated[list[str] | None, Form(description="its features' names, in the model's order")] = None,
    output: Annotated[
        list[str] | None, Form(description="as risk=probabilities[1]; none: all that the file tells")
    ] = None,
    format: Annotated[str | None, Form(description="pickle, with the two fields below; others tell themselves")] = None,
    allow_pickle: Annotated[bool, Form(description="take a pickle, which runs whatever it says")] = False,
    sha256: Annotated[str | None, Form(description="what the file's hash has to be; needed for a pickle")] = None,
) -> ModelAdded:
    """Register a file as the next version of a model. The very same again adds nothing; nothing of it is run.

    What it is is told by its content. A pickle would run as the server when a build loads it: it is refused, unless
    `server.allow_code` is set and whoever sends it may do `code.run`.
    """
    if (allow_pickle or format == "pickle") and not rooms.workspace.settings.values.server.allow_code:
        raise NotAllowed(
            "a pickle would run as the server, and the server takes none",
            safe="nothing was changed",
            next_step="save the model as ONNX; or add it where the workspace is, or set server.allow_code",
        )
    with waited(rooms), TemporaryDirectory(dir=rooms.scratch, prefix="model-") as folder:
        path = FilePath(folder) / (_plain(file.filename or "") or "model")
        try:
            with path.open("wb") as kept:
                shutil.copyfileobj(file.file, kept)
            added = rooms.workspace.add_model(
                str(path), name, feature or (), output or (), format=format, allow_pickle=allow_pickle, sha256=sha256
            )
        except LakewardError as error:
            hide(error, FilePath(folder))
            raise
    return ModelAdded.of(added.version, new=added.new)


def _plain(name: str) -> str:
    """Return the name of a file as far as it is harmless: it is kept for people, to know where the model came from."""
    last = PurePath(name.replace("\\", "/")).name
    return "".join(each for each in last if each.isprintable())[:LONGEST_NAME].strip(". ")
