"""Starts what settings ask for: the one place that knows that there is telemetry."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType

from lakeward.control.tree import Tree
from lakeward.errors import SettingsError
from lakeward.pipelines.service import Pipelines
from lakeward.wiring.sections import TelemetrySection

_ROOM = __name__.rpartition(".")[0]


def telemetry(wanted: TelemetrySection, tree: Tree, pipelines: Pipelines) -> Callable[[], None]:
    """Let traces and events be sent of what happens from now on, and return what ends that.

    Args:
        wanted: where to.
        tree, pipelines: of the workspace.

    Raises:
        SettingsError: the packages for it are not installed, or an address can't be one.
    """
    with ExitStack() as undo:
        if wanted.otlp_endpoint is not None:
            traces = _extra("traces", "telemetry.otlp_endpoint")
            undo.callback(traces.start(wanted.otlp_endpoint, wanted.service_name))
        if wanted.openlineage_url is not None:
            events = _extra("lineage_events", "telemetry.openlineage_url")
            undo.callback(events.start(wanted, tree, pipelines))
        return undo.pop_all().close


def _extra(module: str, setting: str) -> ModuleType:
    try:
        return importlib.import_module(f"{_ROOM}.{module}")
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"{setting} is set, and needs {error.name}, which is not installed",
            safe="nothing was done",
            next_step="pip install 'lakeward[telemetry]', or leave the setting out",
            setting=setting,
        ) from None
