"""A pipeline of dlt that can be killed at a step of its own, whose rows say if any came twice, or not at all."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"

import dlt
from dlt.common.storages import LoadStorage

import lakeward
from lakeward.dlt import client
from lakeward.dlt import lakeward as destination

EXTRACT, JOB, DONE = "dlt:extract", "dlt:job", "dlt:done"
"""Steps of dlt: it reads; it loads a file; it has committed, and has not noted that."""


def die(*_: object, **__: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def events(last: int, dies: bool = False) -> Any:
    """A resource of rows 0 … last: each run reads those that are new. A row has as many nested rows as its number."""
    new = dlt.sources.incremental("number", initial_value=-1)

    @dlt.resource(name="events", write_disposition="append")
    def read(number: Any = new) -> Iterator[dict[str, Any]]:
        for each in range(number.last_value + 1, last + 1):
            yield {"number": each, "parts": [{"part": part} for part in range(each)]}
            if dies:
                die()

    return read


def pipeline(workspace: lakeward.Workspace, place: str | Path, arm: str) -> dlt.Pipeline:
    target = destination(catalog=arm, arm=arm, workspace=workspace)
    return dlt.pipeline(f"killed_{arm}", destination=target, dataset_name="killed", pipelines_dir=str(place))


def run(workspace: lakeward.Workspace, place: str, arm: str, last: int, at: str) -> dict[str, Any]:
    """Run the pipeline, and die at a step of dlt, if `at` is one."""
    if at == JOB:
        client.check_file = die
    elif at == DONE:
        LoadStorage.complete_load_package = die  # type: ignore[method-assign]
    pipeline(workspace, place, arm).run(events(last, dies=at == EXTRACT))
    return {}
