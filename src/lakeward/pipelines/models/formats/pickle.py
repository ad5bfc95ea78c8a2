"""The format `pickle`: what a file makes when it is unpickled, in a process of its own; only where it is asked for."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from lakeward.errors import ModelRefused
from lakeward.pipelines.models import pickle_process
from lakeward.pipelines.models.content import is_pickle, what_is
from lakeward.pipelines.models.model_format import Declared, Model, ModelFormat
from lakeward.pipelines.models.registered import Feature, ModelOutput, ModelVersion, Signature

_EXAMPLE = "--features amount:double,age:long --outputs risk:double=predict_proba[1]"
_LENGTH = struct.Struct(">Q")


class Pickle(ModelFormat):
    """An object with methods such as `predict`, which get a data frame. Unpickling it runs what it says."""

    name: ClassVar[str] = "pickle"
    runs_code = True

    def recognises(self, content: bytes) -> bool:
        """See `ModelFormat.recognises`. Never: a pickle is taken only by who asks for one, with its hash."""
        return False

    def describe(self, content: bytes, declared: Declared) -> Signature:
        """See `ModelFormat.describe`. Its instructions are read, and none is carried out."""
        if not is_pickle(content):
            raise ModelRefused(f"the file is {what_is(content)}, and no pickle", next_step="leave --format out")
        if declared.entry or not declared.features or not declared.outputs:
            raise ModelRefused("a pickle does not tell its features and outputs", next_step=f"name them: {_EXAMPLE}")
        features = []
        for name, type_ in declared.features.items():
            if type_ is None:
                raise ModelRefused(f"feature {name!r} has no type", next_step=f"name it: {_EXAMPLE}")
            features.append(Feature(name, type_))
        outputs = []
        for output in declared.outputs:
            if output.type is None:
                raise ModelRefused(f"output {output.name!r} has no type", next_step=f"name it: {_EXAMPLE}")
            outputs.append(ModelOutput(output.name, output.type, output.tensor, output.column))
        return Signature(tuple(features), tuple(outputs))

    def load(self, content: bytes, version: ModelVersion, threads: int) -> Model:
        """See `ModelFormat.load`. Starts the process, which gets nothing of this one's environment."""
        return _Process(content, version, threads)


class _Process:
    """A model in a process of its own, which ends with this object."""

    takes_nulls = True

    def __init__(self, content: bytes, version: ModelVersion, threads: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(pickle_process.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=os.path.abspath(os.sep),
            env={"OMP_NUM_THREADS": str(threads), "LANG": "C.UTF-8"},
            # A Ctrl-C is for this process, which ends that one.
            start_new_session=True,
        )
        weakref.finalize(self, _end, self._process)
        wanted = [[each.name, each.tensor or "predict", each.column] for each in version.signature.outputs]
        try:
            self._asked(json.dumps(wanted).encode(), content)
        except PickledModelFailed as error:
            raise ModelRefused(
                f"model {version.reference} ({version.origin}) can't be loaded: {error}",
                safe="nothing was written",
                next_step="install the very packages that it was made with, or save the model as ONNX",
                model=version.reference,
            ) from None

    def predict(self, features: pa.RecordBatch) -> Mapping[str, pa.Array]:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, features.schema) as writer:
            writer.write_batch(features)
        found: dict[str, pa.Array] = {}
        for answer in self._asked(sink.getvalue().to_pybytes()):
            (batch,) = pa.ipc.open_stream(answer)
            found[batch.schema.names[0]] = batch.column(0)
        return found

    def interrupt(self) -> None:
        self._process.kill()

    def _asked(self, *parts: bytes) -> list[bytes]:
        """Send parts of a question, and return those of the answer."""
        try:
            pipe: Any = self._process.stdin
            for part in parts:
                pipe.write(_LENGTH.pack(len(part)))
                pipe.write(part)
            pipe.flush()
            outcome, *answer = [self._part() for _ in range(int.from_bytes(self._part(), "big"))]
        except (OSError, EOFError):
            raise PickledModelFailed(f"its process ended, with exit code {self._process.wait()}") from None
        if outcome != b"done":
            raise PickledModelFailed(outcome.decode())
        return answer

    def _part(self) -> bytes:
        pipe: Any = self._process.stdout
        length = pipe.read(_LENGTH.size)
        content: bytes = pipe.read(_LENGTH.unpack(length)[0]) if len(length) == _LENGTH.size else b""
        if len(length) < _LENGTH.size or len(content) < _LENGTH.unpack(length)[0]:
            raise EOFError
        return content


class PickledModelFailed(Exception):
    """What the model's process says went wrong."""


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
