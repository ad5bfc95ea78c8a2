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
import difflib
import re
from typing import Any

from lakeward.pipelines.document import read_document
from lakeward.pipelines.origin import Origin, Path, Place

_OF_OUTPUT = ("strategy", "primary_key", "arm", "allow_empty", "require_incremental", "expectations")
KEYS = ("pipeline", "sources", "output", *_OF_OUTPUT, "tags")
_HEADER_LINE = re.compile(r"--( ?)(.*)")


def read_sql_file(text: str, file: str) -> tuple[dict[str, Any], Origin]:
    """Return the data and places of the pipeline in the form of its YAML.

    Raises:
        SpecError: with file and line: no header, an unknown key, no query.
    """
    header, body_line = _split(text)
    origin = Origin(file, {(): Place(1, 1, 1)}, {(): Place(1, 1, 1)})
    if not header.strip():
        raise origin.error(
            "the file has no header",
            next_step="begin with comment lines such as `-- pipeline: my_name`, `-- output: main.a.b`",
        )
    data, origin = read_document(header, file, indent=3)
    for key in data:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            raise origin.error(
                f"unknown key {key!r}; there are {', '.join(KEYS)}",
                (key,),
                key=True,
                next_step=f"did you mean {near[0]}?" if near else None,
            )
    for key in ("pipeline", "sources", "output", "strategy"):
        if key not in data:
            raise origin.error(f"the header has no {key!r}", (), next_step=f"add `-- {key}: …`")
    if not isinstance(data["sources"], dict):
        raise origin.error("'sources' is a mapping, as in {orders: main.raw.orders}", ("sources",))
    return _as_yaml(data, origin, "\n".join(text.split("\n")[body_line:]), body_line + 1)


def _split(text: str) -> tuple[str, int]:
    """Return the header's YAML, line for line, and how many lines it takes."""
    lines = text.split("\n")
    header = []
    for line in lines:
        match = _HEADER_LINE.fullmatch(line.rstrip("\r"))
        if match is None:
            break
        header.append(match[2])
    return "\n".join(header), len(header)


def _as_yaml(data: dict[str, Any], origin: Origin, body: str, body_line: int) -> tuple[dict[str, Any], Origin]:
    node = "query"
    while node in data["sources"]:
        node += "_"
    output = {"dataset": data["output"], "from": node}
    output.update({key: data[key] for key in _OF_OUTPUT if key in data})
    nodes = {name: {"source": dataset} for name, dataset in data["sources"].items()}
    nodes[node] = {"transform": body}
    place = Place(body_line, 1, body_line)
    here: dict[Path, Place] = {("nodes", node): place, ("nodes", node, "transform"): place}
    values = {_moved(path): where for path, where in origin.values.items()} | here
    keys = {_moved(path): where for path, where in origin.keys.items()} | here
    for name in data["sources"]:
        values["nodes", name, "source"] = origin.values["sources", name]
    moved = dataclasses.replace(origin, keys=keys, values=values)
    tags = {"tags": data["tags"]} if "tags" in data else {}
    return {"pipeline": data["pipeline"], "nodes": nodes, "outputs": [output], **tags}, moved


def _moved(path: Path) -> Path:
    """Return where a header's key is in the YAML form."""
    if not path or path[0] in ("pipeline", "tags"):
        return path
    if path[0] == "sources":
        return ("nodes", *path[1:])
    return ("outputs", 0, "dataset" if path[0] == "output" else path[0], *path[1:])
