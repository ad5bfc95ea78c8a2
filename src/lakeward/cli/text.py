"""Values and tables as people read them on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

MAX_CELL = 40


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()) -> Table:
    """Return a table; the columns named in `numbers` are set to the right. Nothing in a cell is read as markup."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        made.add_column(Text(printable(column)), justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell(value)) for value in row))
    return made


def cell(value: object) -> str:
    """Return one value in short: no control characters, at most `MAX_CELL` characters, bytes in hexadecimal."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        shown = value[: MAX_CELL // 2].hex()
        return f"{shown}… ({len(value):,} bytes)" if len(value) > MAX_CELL // 2 else shown
    text = printable(str(value))
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


def counted(number: int, thing: str) -> str:
    """Return a number with its noun: `1 row`, `2 rows`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """Return text that a terminal can't take for commands: control characters are escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
