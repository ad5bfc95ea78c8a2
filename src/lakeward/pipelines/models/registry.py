"""The registered models of a workspace: adding a version, finding one, and loading it after its hash was verified."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from lakeward.access.guard import require
from lakeward.control.models import ModelRow, ModelTables, NewModel
from lakeward.discovery import discover
from lakeward.errors import InvalidName, ModelRefused, NameTaken, StorageError, UnknownObject
from lakeward.pipelines.models import formats
from lakeward.pipelines.models.content import is_pickle, what_is
from lakeward.pipelines.models.export import Exported
from lakeward.pipelines.models.formats.pickle import Pickle
from lakeward.pipelines.models.formats.python_function import PythonFunction
from lakeward.pipelines.models.model_format import Declared, Model, ModelFormat
from lakeward.pipelines.models.permit import NOTHING_PERMITTED, PERMITTING, Permit
from lakeward.pipelines.models.registered import SOURCE_ROW_INDEX, ModelVersion, Signature, latest_name, parse_reference
from lakeward.pipelines.models.timed import TimedModel
from lakeward.types.schema import name_key

MODELS_FOLDER = "models"
MAX_NAME_BYTES = 255
MAX_FILE_BYTES = 256 << 20
"""A file is one value of a Postgres column, and in memory as a whole when it is used."""

_FUNCTION = re.compile(r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<function>[A-Za-z_]\w*)")


@dataclass(frozen=True)
class Added:
    """A version of a model, and whether it is new: adding the same again adds nothing."""

    version: ModelVersion
    new: bool


@cache
def format_classes() -> Mapping[str, type[ModelFormat]]:
    """Return the formats that there are, by name."""
    return discover(formats, ModelFormat)


def is_function(what: str) -> bool:
    """Say whether a text names a function (`module:function`) and no file that is there."""
    return _FUNCTION.fullmatch(what) is not None and not Path(what).is_file()


class Models:
    """The models of one workspace. Versions of a name count up from 1, never change and are never removed.

    Args:
        tables: where they are stored.
        time_limit: seconds that a loaded one, or a Python function, may compute for one node; None: any.
    """

    def __init__(self, tables: ModelTables, time_limit: float | None = None) -> None:
        self._tables = tables
        self.time_limit = time_limit

    def versions(self, name: str | None = None) -> list[ModelVersion]:
        """Return the versions of a model, oldest first; of all models, if no name is given."""
        return [_version(row) for row in self._tables.versions(name)]

    def find(self, reference: str) -> ModelVersion:
        """Return the version that `churn@3` names, or the newest of `churn` or `churn@latest`.

        Raises:
            UnknownObject: there is none, with what there is.
        """
        name, number = parse_reference(reference) or (latest_name(reference) or reference, None)
        versions = self.versions(name)
        found = [version for version in versions if number in (None, version.version)]
        if found:
            return found[-1]
        if versions:
            last = versions[-1].version
            raise UnknownObject(
                f"model {name!r} has no version {number}; its newest is {last}",
                next_step=f"name it: {name}@{last}",
                model=reference,
            )
        known = sorted({version.name for version in self.versions()})
        raise UnknownObject(
            f"unknown model {name!r}; there are {', '.join(known) or 'none'}",
            next_step="lakeward model add FILE --name NAME",
            model=reference,
        )

    def add(
        self,
        what: str,
        *,
        name: str,
        declared: Declared,
        project: Path,
        actor: str,
        permit: Permit = NOTHING_PERMITTED,
    ) -> Added:
        """Register a model as the next version of its name. Nothing of it is run.

        Args:
            what: a file; or `module:function`, a function in a file of the project's folder `models/`.
            name: of the model.
            declared: what the file does not tell.
            project: the project's folder.
            actor: who adds it.
            permit: what the user says of the file besides.

        Raises:
            Forbidden: whoever acts may not do it; a function and a pickle are code, which runs as this process.
            ModelRefused: it is no model, or not as declared; told by its content, whatever it is called.
            InvalidName, NameTaken, UnknownObject: see there.
        """
        require("model.add")
        _check_name(name)
        function = _FUNCTION.fullmatch(what)
        if function is not None and is_function(what):
            path = project / MODELS_FOLDER / Path(*function["module"].split(".")).with_suffix(".py")
            content, origin = _read_function(path, project), path.relative_to(project).as_posix()
            declared = Declared(declared.features, declared.outputs, function["function"])
            format_: ModelFormat = PythonFunction()
        else:
            content, origin = _read(Path(what)), Path(what).name
            permit.check_hash(content, what)
            format_ = Pickle() if permit.pickle(content, what) else _format_of(content, what)
        if format_.runs_code:
            require("code.run")
        try:
            signature = format_.describe(content, declared)
            _check_signature(signature)
        except ModelRefused as error:
            raise ModelRefused(f"{what}: {error.message}", safe="no model was added", next_step=error.next_step) from (
                error
            )
        new = NewModel(
            name,
            format_.name,
            hashlib.sha256(content).hexdigest(),
            declared.entry,
            origin,
            **signature.to_json(),
        )
        row, is_new = self._tables.add(new, content, actor=actor, check=partial(_check_twins, name))
        return Added(_version(row), is_new)

    def add_fitted(
        self, name: str, exported: Exported, *, origin: str, pipeline: str | None, build_id: uuid.UUID
    ) -> ModelVersion:
        """Register the model that a build made, as the next version of its name. It is there once that is committed.

        Fitting the very same again adds nothing, and gives the version that is there. What earlier builds made that
        were not committed is removed.

        Args:
            name: of the model.
            exported: what was fitted.
            origin: the file and function of its estimator.
            pipeline: that is built; None: a run.
            build_id: of the build.

        Raises:
            InvalidName, NameTaken, ModelRefused: the name, or that of a feature, can't be one.
        """
        _check_name(name)
        _check_signature(exported.signature)
        self._tables.tidy()
        hashed = hashlib.sha256(exported.content).hexdigest()
        new = NewModel(name, "onnx", hashed, "", origin, **exported.signature.to_json())
        actor = f"pipeline {pipeline}" if pipeline is not None else "run"
        row, _ = self._tables.add(
            new, exported.content, actor=actor, check=partial(_check_twins, name), build_id=build_id
        )
        return _version(row)

    def tidy(self, *, dry_run: bool = False) -> list[tuple[str, int, int]]:
        """Remove versions of builds that were not committed; see `ModelTables.tidy`."""
        return self._tables.tidy(dry_run=dry_run)

    def load(self, version: ModelVersion, threads: int) -> Model:
        """Load a model, whose time is limited. Its file is verified by its hash before anything reads it.

        Raises:
            StorageError: the file is gone, or is not the one that was added.
            ModelRefused: it can't be loaded here.
        """
        content = self._tables.content(version.sha256)
        found = hashlib.sha256(content).hexdigest() if content is not None else None
        if content is None or found != version.sha256:
            is_ = "is not in the workspace" if content is None else f"has the hash {found}"
            raise StorageError(
                f"the file of model {version.reference} {is_}, and {version.sha256} was added",
                safe="it was not loaded, and nothing was written",
                next_step=f"add {version.origin} again under another name, or restore the table lakeward.model_files",
                model=version.reference,
            )
        return TimedModel(format_classes()[version.format]().load(content, version, threads), self.time_limit)


def _version(row: ModelRow) -> ModelVersion:
    facts = {name: value for name, value in vars(row).items() if name not in ("features", "outputs", "datasets")}
    signature = Signature.from_json(row.features, row.outputs)
    return ModelVersion(**facts, signature=signature, datasets=tuple(row.datasets))


def _read_function(path: Path, project: Path) -> bytes:
    folder = (project / MODELS_FOLDER).resolve()
    if not path.resolve().is_relative_to(folder):
        raise ModelRefused(f"{path} is a link out of {folder}", next_step=f"put the file into {MODELS_FOLDER}/")
    return _read(path)


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ModelRefused(
                f"{path} is {size:,} bytes large; at most {MAX_FILE_BYTES:,} are kept", safe="no model was added"
            )
        return path.read_bytes()
    except OSError as error:
        raise UnknownObject(
            f"{path} can't be read: {error.strerror or error}",
            safe="no model was added",
            next_step=f"name a file, or module:function for a function in {MODELS_FOLDER}/module.py of the project",
            path=str(path),
        ) from None


def _format_of(content: bytes, what: str) -> ModelFormat:
    for class_ in format_classes().values():
        format_ = class_()
        if format_.recognises(content):
            return format_
    raise ModelRefused(
        f"{what} is {what_is(content)}",
        safe="it was not loaded, and no model was added",
        next_step="save the model as ONNX; for scikit-learn: skl2onnx.to_onnx(…).SerializeToString()"
        + (f", or write {PERMITTING}, if you would run it as a program" if is_pickle(content) else ""),
    )


def _check_name(name: str) -> None:
    if _is_odd(name) or "@" in name:
        raise InvalidName(
            f"{name[:60]!r} is no name of a model: text of at most {MAX_NAME_BYTES} bytes without @ and control "
            "characters",
            next_step="choose another --name",
        )


def _check_twins(name: str, names: Collection[str]) -> None:
    twin = next((each for each in names if each != name and name_key(each) == name_key(name)), None)
    if twin is not None:
        raise NameTaken(
            f"model {name!r} and {twin!r} differ only in case or Unicode form",
            safe="no model was added",
            next_step=f"use --name {twin!r} for a new version of it, or another name",
        )


def _check_signature(signature: Signature) -> None:
    named = {
        "features": [each.name for each in signature.features],
        "outputs": [each.name for each in signature.outputs],
    }
    for what, names in named.items():
        odd = next((name for name in names if _is_odd(name)), None)
        if odd is not None:
            raise ModelRefused(f"one of the {what} has the name {odd[:60]!r}", next_step=f"name them: --{what} …")
        keys = [name_key(name) for name in names]
        twice = next((name for name, key in zip(names, keys, strict=True) if keys.count(key) > 1), None)
        if twice is not None:
            raise ModelRefused(f"two {what} are called {twice!r}, or differ only in case", next_step="rename one")
    for feature in signature.features:
        if feature.name == SOURCE_ROW_INDEX and feature.type.kind != "long":
            raise ModelRefused(f"feature {SOURCE_ROW_INDEX!r} is a long", next_step=f"write {SOURCE_ROW_INDEX}:long")


def _is_odd(name: str) -> bool:
    odd = any(unicodedata.category(character) in ("Cc", "Cs") for character in name)
    return odd or not name.strip() or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES
