"""Lets a query name datasets in full, where there is no node to name them: `from main.raw.orders`.

To the engine such a dataset is an input that is called by its full name. In double quotes, `"main.raw.orders"`, it
stands in the text as it is. Three levels with dots between them are put in quotes, and keep the name that SQL gives a
table without an alias, its last level. Nothing else of the text is touched, and every place in it can be told from one
in the text that runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from lakeward.compute.sql import looks_like_file, parsed, visible_ctes
from lakeward.control.names import DatasetName
from lakeward.errors import InvalidName
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import name_key


@dataclass(frozen=True)
class FullNames:
    """A query with the datasets that it names in full.

    Args:
        text: what runs.
        sources: the datasets' full names, by the names under which `text` reads them.
        moved: of each change, in order: where it ends in `text`, and how much longer the text is from there on.
    """

    text: str
    sources: Mapping[str, str]
    moved: tuple[tuple[int, int, int], ...] = ()

    def place(self, position: int) -> int:
        """Return the position in the user's own text of one in `text`."""
        grown = 0
        for start, end, by in self.moved:
            if position >= end:
                grown += by
            elif position > start:
                return start - grown
        return position - grown


def read_full_names(sql: str, declared: Collection[str]) -> FullNames:
    """Find the datasets that a query names in full.

    Args:
        sql: the user's text.
        declared: names that mean something else.

    Raises:
        SqlError: the text can't be parsed.
    """
    known = {name.casefold() for name in declared}
    names: dict[str, str] = {}
    sources: dict[str, str] = {}
    changes: list[tuple[int, int, str]] = []
    for table in parsed(sql).find_all(exp.Table):
        levels = [part.name for part in table.parts if isinstance(part, exp.Identifier)]
        if len(levels) != len(table.parts):
            continue
        if len(levels) == 1 and levels[0].casefold() not in known | visible_ctes(table):
            dataset = _in_quotes(levels[0])
            if dataset is not None:
                sources[names.setdefault(name_key(levels[0]), levels[0])] = dataset
        elif len(levels) == 3:
            dataset = str(DatasetName(*levels))
            name = names.setdefault(name_key(dataset), dataset)
            sources[name] = sources.get(name, dataset)
            alias = "" if table.alias else f" AS {duckdb_name(levels[2])}"
            start, end = table.parts[0].meta["start"], table.parts[-1].meta["end"] + 1
            changes.append((start, end, f"{duckdb_name(name)}{alias}"))
    return _changed(sql, sources, sorted(changes))


def _in_quotes(name: str) -> str | None:
    """Return the full name that a name of one level is; None: it is none."""
    if looks_like_file(name):
        return None
    try:
        return str(DatasetName.parse(name))
    except InvalidName:
        return None


def _changed(sql: str, sources: Mapping[str, str], changes: list[tuple[int, int, str]]) -> FullNames:
    pieces: list[str] = []
    moved: list[tuple[int, int, int]] = []
    last = length = 0
    for start, end, name in changes:
        pieces += [sql[last:start], name]
        length += start - last + len(name)
        moved.append((length - len(name), length, len(name) - (end - start)))
        last = end
    return FullNames("".join(pieces) + sql[last:], sources, tuple(moved))
