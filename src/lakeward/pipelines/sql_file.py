"""Reads a pipeline that is one `.sql` file: a comment block with its keys, then its query.

    -- pipeline: carrier_delays
    -- sources: {flights: nyc.raw.flights}
    -- output: nyc.analytics.carrier_delays
    -- strategy: replace
    select carrier, avg(dep_delay) as delay from flights group by carrier

It means the same as YAML with the sources as `source` nodes, the query as one `transform` and one output.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from lakeward.pipelines.document import read_document
from lakeward.pipelines.origin import Origin, Path, Place
from lakeward.pipelines.problems import Problems
from lakeward.pipelines.spec_checks import corrected, shown

_OF_OUTPUT = ("strategy", "primary_key", "arm", "allow_empty", "require_incremental", "expectations")
_OF_PIPELINE = ("pipeline", "tags", "schedule")
KEYS = ("pipeline", "sources", "output", *_OF_OUTPUT, "tags", "schedule")
_EXAMPLE = (
    "`-- pipeline: my_name`, `-- sources: {orders: main.raw.orders}`, `-- output: main.a.b`, `-- strategy: replace`"
)
_HEADER_LINE = re.compile(r"--( ?)(.*)")


def read_sql_file(text: str, file: str, problems: Problems | None = None) -> tuple[dict[str, Any], Origin]:
    """Return the data and places of the pipeline in the form of its YAML.

    Args:
        text: the file's.
        file: its name for errors.
        problems: where errors are noted behind which reading goes on; None: they are raised.

    Raises:
        SpecError: with file and line: no header, or one that is not YAML; no query.
    """
    header, body_line = _split(text)
    body = "\n".join(text.split("\n")[body_line:])
    origin = Origin(file, {(): Place(1, 1, 1)}, {(): Place(1, 1, 1)})
    if not text.strip():
        raise origin.error("the file is empty", next_step=f"begin with the header: {_EXAMPLE}")
    if not header.strip():
        raise origin.error("the file has no header", next_step=f"begin with comment lines: {_EXAMPLE}")
    noted = Problems() if problems is None else problems
    data, origin = read_document(header, file, noted, header_lines=body_line)
    data, origin = corrected(data, KEYS, (), origin, noted)
    if not body.strip():
        noted.add(
            origin.error("the file has no SQL below its header", next_step="write one SELECT below the comment lines")
        )
        body = "select 1"
    sources = _sources(data, origin, noted)
    if problems is None:
        noted.raise_all()
    return _as_yaml(data, sources, origin, body, body_line + 1)


def _sources(data: dict[str, Any], origin: Origin, problems: Problems) -> dict[str, str]:
    """Return the datasets by the names that the query reads them by."""
    sources = data.get("sources")
    if "sources" not in data:
        problems.add(origin.missing(("sources",)))
        return {}
    if not isinstance(sources, dict):
        problems.add(
            origin.error(
                f"'sources' is {shown(sources)}, and should be a mapping of names to datasets",
                ("sources",),
                next_step="write `-- sources: {orders: main.raw.orders}`, or `-- sources: {}` if there are none",
            )
        )
        return {}
    for name, dataset in sources.items():
        if not isinstance(dataset, str):
            problems.add(
                origin.error(
                    f"source {name!r} is {shown(dataset)}, and should be the full name of a dataset",
                    ("sources", name),
                    next_step=f"write `{name}: catalog.schema.dataset`; a window is written in YAML",
                )
            )
    return {name: dataset for name, dataset in sources.items() if isinstance(dataset, str)}


def _split(text: str) -> tuple[str, int]:
    """Return the header's YAML, line for line, and how many lines it takes. Empty lines before it are part of it."""
    header: list[str] = []
    for line in text.split("\n"):
        match = _HEADER_LINE.fullmatch(line.rstrip("\r"))
        if match is not None:
            header.append(match[2])
        elif not line.strip() and not any(header):
            header.append("")
        else:
            break
    return "\n".join(header), len(header)


def _as_yaml(
    data: dict[str, Any], sources: dict[str, str], origin: Origin, body: str, body_line: int
) -> tuple[dict[str, Any], Origin]:
    node = "query"
    while node in sources:
        node += "_"
    output = {"dataset": data["output"]} if "output" in data else {}
    output |= {"from": node, **{key: data[key] for key in _OF_OUTPUT if key in data}}
    nodes: dict[str, Any] = {name: {"source": dataset} for name, dataset in sources.items()}
    nodes[node] = {"transform": body}
    place = Place(body_line, 1, body_line)
    here: dict[Path, Place] = {("nodes", node): place, ("nodes", node, "transform"): place}
    values = {_moved(path): where for path, where in origin.values.items()} | here
    keys = {_moved(path): where for path, where in origin.keys.items()} | here
    for name in sources:
        values["nodes", name, "source"] = origin.values["sources", name]
    moved = dataclasses.replace(origin, keys=keys, values=values)
    named: dict[str, Any] = {key: data[key] for key in _OF_PIPELINE if key in data}
    return {**named, "nodes": nodes, "outputs": [output]}, moved


def _moved(path: Path) -> Path:
    """Return where a header's key is in the YAML form."""
    if not path or path[0] in _OF_PIPELINE:
        return path
    if path[0] == "sources":
        return ("nodes", *path[1:])
    return ("outputs", 0, "dataset" if path[0] == "output" else path[0], *path[1:])
