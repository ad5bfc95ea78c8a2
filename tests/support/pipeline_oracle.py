"""What pipelines mean, told plainly: sources are dictionaries, and a strategy looks at the whole history.

Nothing here knows of arms, versions or deltas of Lakeward: it is what its builds are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

Row = tuple[Any, ...]

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "a": {"id": "long", "g": "long", "v": "long", "s": "string"},
    "b": {"g": "long", "s": "string"},
}
"""The sources of every pipeline: of each, the first column is the key."""

ARROW = {"long": pa.int64(), "string": pa.string()}
STRATEGIES = ("replace", "mirror", "snapshot_replace", "append_new", "append_always")
BY_KEY = ("snapshot_replace", "append_new")
"""Those that take deltas of rows that were updated."""
TAKE_DELTAS = (*BY_KEY, "append_always")
COUNTS = ("rows_in", "rows_added", "rows_updated", "rows_unchanged", "rows_deleted", "rows_skipped", "row_count")


@dataclass
class Source:
    """A source: its rows by key, the step at which each was written last, and what was done to it at which step."""

    rows: dict[int, Row] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    done: list[tuple[int, str]] = field(default_factory=list)

    def write(self, step: int, verb: str, rows: Sequence[Row]) -> None:
        """Do what a verb does; rows that stay the same are not written."""
        given = {row[0]: row for row in rows}
        old = dict(self.rows)
        if verb == "replace":
            self._put(step, given, "replaced" if old else "added")
            for key in old.keys() - given.keys():
                self._take(key)
            return
        if verb != "delete":
            self._put(step, {key: row for key, row in given.items() if key not in old}, "added")
            self._put(step, {key: row for key, row in given.items() if key in old and old[key] != row}, "updated")
        gone = given.keys() & old.keys() if verb == "delete" else old.keys() - given.keys() if verb == "mirror" else ()
        for key in gone:
            self._take(key)
            self.done.append((step, "deleted"))

    def _put(self, step: int, rows: Mapping[int, Row], what: str) -> None:
        self.rows |= rows
        self.written |= dict.fromkeys(rows, step)
        self.done += [(step, what)] * bool(rows)

    def _take(self, key: int) -> None:
        del self.rows[key], self.written[key]

    def since(self, step: int) -> list[Row]:
        """Return the rows that were written after a step."""
        return [row for key, row in self.rows.items() if self.written[key] > step]

    def happened(self, step: int) -> set[str]:
        """Return what was done after a step."""
        return {what for when, what in self.done if when > step}


@dataclass(frozen=True)
class NodeCase:
    """One kind of node, or one use of it.

    Args:
        name: of the case.
        nodes: the pipeline's nodes in YAML; they read `a` and `b`, whose nodes are not among them.
        oracle: by the names that outputs read, what they give: SQL over the tables `a` and `b`.
        key: the outputs' primary key.
        delta: whether the rows that are new in the sources give all that is new.
        lookups: sources that are read in full each time.
    """

    name: str
    nodes: str
    oracle: Mapping[str, str]
    key: Sequence[str] = ("id",)
    delta: bool = True
    lookups: frozenset[str] = frozenset()

    @property
    def sources(self) -> list[str]:
        """The sources that it reads."""
        return [
            name for name in COLUMNS if any(f" {name} " in sql.replace("\n", " ") + " " for sql in self.oracle.values())
        ]

    def compute(self, output: str, rows: Mapping[str, Sequence[Row]]) -> tuple[list[str], list[Row]]:
        """Return the columns and the rows of an output for rows of the sources."""
        with _engine().cursor() as connection:
            for name, columns in COLUMNS.items():
                arrays = [
                    pa.array([row[index] for row in rows[name]], ARROW[type_])
                    for index, type_ in enumerate(columns.values())
                ]
                connection.register(name, pa.table(arrays, list(columns)))
            found = connection.execute(self.oracle[output])
            return [column[0] for column in found.description], found.fetchall()


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    # Opening one takes longer than all that a case asks of it.
    return duckdb.connect(config={"threads": 1})


@dataclass
class Target:
    """An output: what its strategy makes of all builds so far.

    Args:
        strategy: which one.
        rows: what it has.
        built: the step of the last build; None: there was none.
    """

    strategy: str
    rows: list[Row] = field(default_factory=list)
    built: int | None = None

    def is_delta(self, case: NodeCase, sources: Mapping[str, Source], full: bool) -> bool:
        """Say whether a build reads only what is new."""
        if self.built is None or full or not case.delta or self.strategy not in TAKE_DELTAS:
            return False
        forbidden = {"deleted", "replaced"} if self.strategy in BY_KEY else {"deleted", "replaced", "updated"}
        return not any(sources[name].happened(self.built) & forbidden for name in set(case.sources) - case.lookups)

    def build(
        self, case: NodeCase, output: str, sources: Mapping[str, Source], step: int, full: bool
    ) -> dict[str, int]:
        """Build once, and return the counts."""
        delta = self.is_delta(case, sources, full)
        low = self.built if delta and self.built is not None else -1
        read = {name: each.since(-1 if name in case.lookups else low) for name, each in sources.items()}
        names, given = case.compute(output, read)
        places = [names.index(column) for column in case.key]

        def by_key(rows: Sequence[Row]) -> dict[Row, Row]:
            found = {tuple(row[place] for place in places): row for row in rows}
            assert len(found) == len(rows), "a case whose key is none"
            return found

        old, new = by_key(self.rows), by_key(given)
        added = [row for key, row in new.items() if key not in old]
        updated = {key: row for key, row in new.items() if key in old and old[key] != row}
        unchanged = len(new) - len(added) - len(updated)
        counts = dict.fromkeys(COUNTS, 0) | {"rows_in": len(given), "rows_added": len(added)}
        if self.strategy == "replace" or (self.strategy == "append_always" and self.built is not None and not delta):
            counts |= {"rows_added": len(given), "rows_deleted": len(self.rows)}
            self.rows = given
        elif self.strategy == "append_always":
            assert len(added) == len(given), "a key that comes again"
            self.rows = self.rows + given
        elif self.strategy == "append_new":
            counts |= {"rows_skipped": len(given) - len(added)}
            self.rows = self.rows + added
        else:
            counts |= {"rows_updated": len(updated), "rows_unchanged": unchanged}
            kept = old
            if self.strategy == "mirror":
                kept = {key: row for key, row in old.items() if key in new}
                counts |= {"rows_deleted": len(old) - len(kept)}
            self.rows = list((kept | new).values())
        self.built = step
        return counts | {"row_count": len(self.rows)}
