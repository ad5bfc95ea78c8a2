"""A source or resource of dlt in somebody's Python file, which is run to get it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from dlt.extract import DltResource, DltSource

from lakeward.errors import UsageError


def called(text: str, folder: Path) -> DltSource | DltResource:
    """Return what a function of a Python file returns. The file is run, with all rights of this process.

    Args:
        text: `FILE.py:FUNCTION`; what the file imports may lie beside it.
        folder: where the file's path begins.

    Raises:
        UsageError: there is no such function, or it returns something else. What it raises comes through unchanged.
    """
    file, _, name = text.rpartition(":")
    path = folder / file
    if not (file.endswith(".py") and path.is_file()):
        raise _refused(text, f"{file or text} is no Python file", "write FILE.py:FUNCTION")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, "it ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    data = function() if callable(function) and not isinstance(function, DltSource | DltResource) else function
    if not isinstance(data, DltSource | DltResource):
        kind = "is not there" if function is None else f"gives a {type(data).__name__}"
        raise _refused(text, f"{name!r} {kind}", "name a function that returns a dlt source or resource")
    return data


def _refused(text: str, why: str, step: str) -> UsageError:
    return UsageError(
        f"{text!r} names no source or resource of dlt: {why}", safe="nothing was loaded", next_step=step, call=text
    )
