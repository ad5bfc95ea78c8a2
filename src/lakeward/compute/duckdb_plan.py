"""Reads DuckDB's plan of a query: which columns of which input it scans, how often, and whether it loops.

The plan and not the text is asked, because only the plan knows what stars, USING, column patterns and lateral
references come to, and whether the optimizer scans a table twice where the text names it once (or the other way round).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SCANNED = re.compile(r"(?P<prefix>.+)_c(?P<index>\d+)(\..*)?", re.DOTALL)

IN_PLACE = "READ_PARQUET"
"""What the plan calls a scan of an input that is read in place."""
_FILES_BY_NAME = frozenset({"PARQUET_SCAN", "READ_CSV", "READ_CSV_AUTO", "READ_JSON", "READ_JSON_AUTO"})
"""What it calls a scan of a file that a text names like a table."""

MAX_STREAMS = 2
"""With more inputs the order of joins matters, and a stream doesn't tell the optimizer its size."""


@dataclass(frozen=True)
class Scan:
    """One scan of an input: the input's prefix, and the indexes of the columns it reads."""

    prefix: str
    columns: frozenset[int]


@dataclass(frozen=True)
class Plan:
    """The scans of a plan, and whether a part of it runs more than once (a recursive query does).

    Args:
        scans: those of inputs that are streamed.
        files: how many scans of inputs in place there are.
        loops: whether a part runs more than once.
    """

    scans: tuple[Scan, ...]
    files: int
    loops: bool

    @property
    def streams(self) -> bool:
        """Whether the inputs may be read as they come: each is scanned once, nothing loops, and they are few."""
        prefixes = {scan.prefix for scan in self.scans}
        few = len(self.scans) + self.files <= MAX_STREAMS
        return few and len(prefixes) == len(self.scans) and not self.loops


def read_plan(nodes: list[dict[str, Any]]) -> Plan:
    """Read the JSON of `EXPLAIN (FORMAT JSON)`.

    Raises:
        ValueError: a scan's columns can't be told; then nothing is known, and guessing would lose rows. Or a file is
            scanned by its name, which only a text could do that got past the gate.
    """
    scans, files, loops = [], 0, False
    for node in _walk(nodes):
        name = str(node.get("name", ""))
        if name in _FILES_BY_NAME:
            raise ValueError(f"a scan of a file that is no input: {name}")
        files += name == IN_PLACE
        if "ARROW_SCAN" in name:
            scans.append(_scan(node.get("extra_info", {}).get("Projections")))
        loops = loops or name.startswith("REC")
    return Plan(tuple(scans), files, loops)


def _scan(projections: object) -> Scan:
    names = projections if isinstance(projections, list) else [projections]
    found = [_SCANNED.fullmatch(name) if isinstance(name, str) else None for name in names]
    prefixes = {match["prefix"] for match in found if match is not None}
    if None in found or len(prefixes) != 1:
        raise ValueError(f"a scan of unknown columns {projections!r}")
    return Scan(prefixes.pop(), frozenset(int(match["index"]) for match in found if match is not None))


def _walk(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        yield from _walk(node.get("children", []))
