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


MAX_STREAMS = 2
"""With more inputs the order of joins matters, and a stream doesn't tell the optimizer its size."""


@dataclass(frozen=True)
class Scan:
    """One scan of an input: the input's prefix, and the indexes of the columns it reads."""

    prefix: str
    columns: frozenset[int]


@dataclass(frozen=True)
class Plan:
    """The scans of a plan, and whether a part of it runs more than once (a recursive query does)."""

    scans: tuple[Scan, ...]
    loops: bool

    @property
    def streams(self) -> bool:
        """Whether the inputs may be read as they come: each is scanned once, nothing loops, and they are few."""
        prefixes = {scan.prefix for scan in self.scans}
        return len(prefixes) == len(self.scans) <= MAX_STREAMS and not self.loops


def read_plan(nodes: list[dict[str, Any]]) -> Plan:
    """Read the JSON of `EXPLAIN (FORMAT JSON)`.

    Raises:
        ValueError: a scan's columns can't be told; then nothing is known, and guessing would lose rows.
    """
    scans, loops = [], False
    for node in _walk(nodes):
        name = str(node.get("name", ""))
        if "ARROW_SCAN" in name:
            scans.append(_scan(node.get("extra_info", {}).get("Projections")))
        loops = loops or name.startswith("REC")
    return Plan(tuple(scans), loops)


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
