"""Full names, `catalog.schema.dataset` and its beginnings: read, written, and quoted where a level holds a dot."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from lakeward.errors import InvalidName

_LEVEL = re.compile(r'"((?:[^"]|"")*)"|([^".]+)')


@dataclass(frozen=True, order=True)
class DatasetName:
    """The three human names of a dataset's place in the tree. `str()` is the text form, which `parse` reads back."""

    catalog: str
    schema: str
    dataset: str

    def __post_init__(self) -> None:
        """Refuse what Postgres can't hold as text, before it gets there; the other rules stand in Postgres."""
        for level in (self.catalog, self.schema, self.dataset):
            check_text(level)

    @classmethod
    def parse(cls, text: str) -> DatasetName:
        """Read `catalog.schema.dataset`; a level with a dot or a double quote stands in double quotes.

        Raises:
            InvalidName: there are not three levels, or quotes don't close, or a level has a control character.

        Example:
            >>> DatasetName.parse('main."emea.north".orders').schema
            'emea.north'
        """
        levels = parse_levels(text, 3)
        if levels is None:
            rule = 'write catalog.schema.dataset, with double quotes around a level that holds a dot: a."b.c".d'
            raise InvalidName(
                f"{text!r} is not a dataset's full name",
                next_step=f"write main.{text}; a name is catalog.schema.dataset" if parse_levels(text, 2) else rule,
                name=text,
            )
        return cls(*levels)

    def __str__(self) -> str:
        return full_name((self.catalog, self.schema, self.dataset))


def parse_levels(text: str, count: int) -> tuple[str, ...] | None:
    """Return the levels of a full name, the outermost first; None: there are not so many, or quotes don't close."""
    levels: list[str] = []
    position = 0
    while True:
        match = _LEVEL.match(text, position)
        if match is None:
            break
        quoted, plain = match.groups()
        levels.append(plain.strip() if quoted is None else quoted.replace('""', '"'))
        position = match.end()
        if position == len(text) or text[position] != ".":
            break
        position += 1
    whole = len(levels) == count and position == len(text) and all(level.strip() for level in levels)
    return tuple(levels) if whole else None


def check_text(level: str) -> None:
    """Raise InvalidName if Postgres can't hold the name of a level as text; its other rules stand in Postgres."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in level):
        raise InvalidName(
            f"{level!r} has a control character or a lone surrogate",
            next_step="choose another name",
            name=ascii(level),
        )


def full_name(levels: Sequence[str]) -> str:
    """Return the full name of a catalog, schema or dataset, which `parse_levels` reads back."""
    return ".".join(quote_level(level) for level in levels)


def quote_level(level: str) -> str:
    """Return one level as it stands in a full name."""
    if "." in level or '"' in level or level != level.strip():
        return '"' + level.replace('"', '""') + '"'
    return level
