"""The list of moves that `plan` writes, people edit, and `apply` reads: TOML, one line for each table.

    [move]
    "main.sales.orders" = { from = ["datasets", "orders"], to = ["main", "sales", "orders"] }

A line that is cut out, or has a `#` in front, is not moved. The levels of a name in the catalog are never joined, since
a dot may be in them.
"""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lakeward.control.identifiers import TableIdentifier
from lakeward.control.moves import Relocation
from lakeward.errors import UsageError
from lakeward.migration.moves.planning import PlannedMove, Unmovable

TABLE = "move"

_HEAD = """\
# Iceberg tables that get another name in the catalog, in this order. Their files stay where they are.
# Cut lines out, or put a # in front of them; then: lakeward move apply --plan FILE
"""


def write_list(
    path: Path, moves: Iterable[PlannedMove], refused: Iterable[Unmovable] = (), *, replace: bool = False
) -> None:
    """Write a list, as a whole or not at all.

    Args:
        path: of the file.
        moves: what is to be moved.
        refused: what can't be, and why: comments.
        replace: write it anew if it is there.

    Raises:
        UsageError: it is there, or can't be written.
    """
    comments = [_comment(f"{each.dataset}: {each.reason}") for each in refused]
    text = "\n".join([_HEAD, f"[{TABLE}]", *map(_line, moves), *(["", "# Not moved:", *comments] if comments else [])])
    try:
        _write(path, f"{text}\n", replace=replace)
    except FileExistsError:
        raise UsageError(
            f"{path} is there already, and may have been edited",
            safe="nothing was changed",
            next_step=f"name another file, or carry that one out: lakeward move apply --plan {shlex.quote(str(path))}",
            path=str(path),
        ) from None
    except OSError as error:
        raise UsageError(
            f"the list of moves {path} can't be written: {error.strerror or error}",
            safe="no table was touched by that",
            next_step="name another file",
            path=str(path),
        ) from None


def _write(path: Path, text: str, *, replace: bool) -> None:
    if not replace:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_list(path: Path) -> list[PlannedMove]:
    """Return what a list wants to be moved, in its order.

    Raises:
        UsageError: it can't be read, or is no such list; the message says where.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _wrong(path, f"can't be read: {reason}") from None
    for name in document:
        if name != TABLE:
            raise _wrong(path, f"has {name!r} where only [{TABLE}] may be")
    entries = document.get(TABLE, {})
    if not isinstance(entries, dict):
        raise _wrong(path, f"has a value where the table [{TABLE}] has to be")
    return [_entry(path, dataset, entry) for dataset, entry in entries.items()]


def _line(move: PlannedMove) -> str:
    source, target = move.relocation.source, move.relocation.target
    return f"{_text(move.dataset)} = {{ from = {_levels(source)}, to = {_levels(target)} }}"


def _levels(identifier: TableIdentifier) -> str:
    return f"[{', '.join(map(_text, identifier.parts))}]"


def _text(value: str) -> str:
    """Return a TOML string: as in JSON, and DEL is escaped, too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    """Return a text as a comment: one line, without the control characters that TOML has no place for."""
    return f"# {' '.join(''.join(each if each.isprintable() else ' ' for each in text).split())}"


def _entry(path: Path, dataset: str, entry: Any) -> PlannedMove:
    if not (isinstance(entry, dict) and set(entry) == {"from", "to"} and all(map(_is_identifier, entry.values()))):
        raise _wrong(path, f"says of {dataset} something else than {{ from = [levels], to = [levels] }}")
    return PlannedMove(dataset, Relocation(TableIdentifier.of(entry["from"]), TableIdentifier.of(entry["to"])))


def _is_identifier(levels: Any) -> bool:
    return isinstance(levels, list) and len(levels) > 1 and all(isinstance(each, str) and each for each in levels)


def _wrong(path: Path, what: str) -> UsageError:
    return UsageError(
        f"the list of moves {path} {what}",
        safe="nothing was moved",
        next_step="correct it, or write a new one: lakeward move plan --file FILE",
        path=str(path),
    )
