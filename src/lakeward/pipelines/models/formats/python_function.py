"""The format `python_function`: a function in a file of the project's folder `models/`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from types import ModuleType

import pyarrow as pa

from lakeward.errors import ModelRefused
from lakeward.pipelines.models.model_format import Declared, Model, ModelFormat
from lakeward.pipelines.models.registered import Feature, ModelOutput, ModelVersion, Signature

_EXAMPLE = "for instance --features amount:double,age:long --outputs risk:double"


class PythonFunction(ModelFormat):
    """A function of a Python file of the project. It gets a `pyarrow.RecordBatch` and gives one value for each row."""

    name = "python_function"
    runs_code = True

    def recognises(self, content: bytes) -> bool:
        """See `ModelFormat.recognises`. Never: a function is named, not found, so that no file is run by mistake."""
        return False

    def describe(self, content: bytes, declared: Declared) -> Signature:
        """See `ModelFormat.describe`. The file is parsed, not run."""
        try:
            tree = ast.parse(content)
        except (SyntaxError, ValueError) as error:
            raise ModelRefused(f"the file is no Python: {error}", next_step="mend it") from None
        names = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
        if declared.entry not in names:
            raise ModelRefused(
                f"the file has no function {declared.entry!r}; it has {', '.join(names) or 'none'}",
                next_step="name a function that is defined at its top level",
            )
        if not declared.features or not declared.outputs:
            raise ModelRefused("a function does not tell its features and outputs", next_step=f"name them, {_EXAMPLE}")
        features = []
        for name, type_ in declared.features.items():
            if type_ is None:
                raise ModelRefused(f"feature {name!r} has no type", next_step=f"name it, {_EXAMPLE}")
            features.append(Feature(name, type_))
        outputs = []
        for output in declared.outputs:
            if output.type is None or output.tensor is not None:
                raise ModelRefused(f"output {output.name!r} is a name and a type", next_step=f"write it so, {_EXAMPLE}")
            outputs.append(ModelOutput(output.name, output.type))
        return Signature(tuple(features), tuple(outputs))

    def load(self, content: bytes, version: ModelVersion, threads: int) -> Model:
        """See `ModelFormat.load`. Runs the file as a module with a name of its own, by what it contains.

        It is in `sys.modules`, because the standard library looks there for the names that an annotation uses.
        """
        module = ModuleType(f"lakeward_model_{version.sha256[:16]}")
        sys.modules[module.__name__] = module
        try:
            code = compile(content, f"{version.origin} ({version.reference})", "exec", dont_inherit=True)
            exec(code, vars(module))
            function = vars(module)[version.entry]
        except Exception as error:
            raise ModelRefused(
                f"model {version.reference} ({version.origin}) can't be loaded: {type(error).__name__}: {error}",
                safe="nothing was written",
                next_step=f"mend {version.origin} and add it again: lakeward model add",
                model=version.reference,
            ) from error
        return _Function(function)


class _Function:
    takes_nulls = True

    def __init__(self, function: Callable[[pa.RecordBatch], object]) -> None:
        self._function = function

    def predict(self, features: pa.RecordBatch) -> object:
        return self._function(features)

    def interrupt(self) -> None:
        # Python can't end what another thread does.
        pass
