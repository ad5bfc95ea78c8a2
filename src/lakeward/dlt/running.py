"""Runs a source or resource of dlt into datasets, without more to set up than where they shall be."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dlt
from dlt.extract import DltResource, DltSource

from lakeward.control.names import parse_levels
from lakeward.dlt.destination import lakeward
from lakeward.errors import InvalidName
from lakeward.wiring.workspace import Workspace

TELEMETRY = "RUNTIME__DLTHUB_TELEMETRY"


@dataclass(frozen=True)
class Loaded:
    """What a load wrote.

    Args:
        pipeline: the name of dlt's pipeline, under which its state is kept.
        load_ids: the packages that were loaded, those first that were pending.
        rows: of each table, how many were extracted and loaded now.
    """

    pipeline: str
    load_ids: Sequence[str]
    rows: Mapping[str, int]

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {"pipeline": self.pipeline, "load_ids": list(self.load_ids), "rows": dict(self.rows)}


def load(
    workspace: Workspace,
    data: DltSource | DltResource,
    into: str,
    *,
    arm: str | None = None,
    pipelines_dir: str | Path | None = None,
    **how: Any,
) -> Loaded:
    """Run a source or resource of dlt into the datasets of one schema.

    What dlt extracted and could not load is loaded first. Nothing is sent to dlt's makers, unless the environment says
    `RUNTIME__DLTHUB_TELEMETRY=true`.

    Args:
        workspace: an open one.
        data: the source or resource; the code that made it runs here, with all rights of this process.
        into: `catalog.schema` of the datasets, which are named as dlt's tables.
        arm: of datasets that are made; None: as the flag of the writer `dlt.load` says.
        pipelines_dir: where dlt works and keeps what is pending; None: `dlt` in the home, or dlt's own place.
        how: more for `dlt.Pipeline.run`: `write_disposition`, `primary_key`, `refresh` …

    Raises:
        InvalidName: `into` is no catalog and schema.
        PipelineStepFailed: of dlt, caused by an error of Lakeward where a dataset refused something.

    Example:
        >>> load(ws, dlt.resource([{"id": 1}], name="items"), "main.raw")  # doctest: +SKIP
    """
    levels = parse_levels(into, 2)
    if levels is None:
        raise InvalidName(f"{into!r} is not a catalog and schema", next_step="write catalog.schema", name=into)
    os.environ.setdefault(TELEMETRY, "false")
    catalog, schema = levels
    home = workspace.settings.values.home
    chosen = pipelines_dir if pipelines_dir is not None or home is None else home / "dlt"
    # dlt declares a text, and takes None for its own place.
    place: Any = None if chosen is None else str(Path(chosen).expanduser())
    pipeline = dlt.pipeline(
        re.sub(r"\W", "_", f"lakeward_{catalog}_{schema}_{data.name}"),
        # The schema is the one that was named, and none that dlt makes of its name.
        destination=lakeward(catalog=catalog, arm=arm, workspace=workspace, enable_dataset_name_normalization=False),
        dataset_name=schema,
        pipelines_dir=place,
    )
    loads: list[str] = []
    if pipeline.has_pending_data:
        # Given data, dlt would load what is pending, and leave the data alone.
        loads += pipeline.run().loads_ids
    info = pipeline.run(data, **how)
    trace = pipeline.last_trace
    rows = trace.last_normalize_info.row_counts if trace is not None and trace.last_normalize_info else {}
    own = set(pipeline.default_schema.dlt_table_names())
    counted = {table: count for table, count in sorted(rows.items()) if table not in own}
    return Loaded(pipeline.pipeline_name, (*loads, *info.loads_ids), counted)
