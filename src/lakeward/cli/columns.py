"""Reads column declarations of the command line: `id:long,amount:decimal(18,4)` and `--column id=long`."""

from __future__ import annotations

from collections.abc import Iterable

from lakeward.errors import SchemaError

_OPENING, _CLOSING = "(<", ")>"


def parse_columns(listed: str | None, single: Iterable[str] = ()) -> dict[str, str]:
    """Return the declared type texts by column, in order.

    Args:
        listed: `name:type,…`; the first colon ends the name, commas inside a type's brackets separate nothing.
        single: `name=type`, for names with a colon or comma; the last `=` ends the name.

    Raises:
        SchemaError: a part has no type, or a column is declared twice.

    Example:
        >>> parse_columns("id:long,price:decimal(18,4)", ["odd:name=string"])
        {'id': 'long', 'price': 'decimal(18,4)', 'odd:name': 'string'}
    """
    declared: dict[str, str] = {}
    for part in split_list(listed) if listed is not None else []:
        name, colon, type_ = part.partition(":")
        _add(declared, name.strip(), type_.strip() if colon else "", part)
    for part in single:
        name, equals, type_ = part.rpartition("=")
        _add(declared, name, type_.strip() if equals else "", part)
    return declared


def parse_names(listed: Iterable[str]) -> list[str]:
    """Return column names, given one by one or with commas between them."""
    return [name.strip() for part in listed for name in part.split(",") if name.strip()]


def _add(declared: dict[str, str], name: str, type_: str, part: str) -> None:
    if not name or not type_:
        raise SchemaError(f"{part!r} declares no column", next_step="write --columns id:long,note:string", part=part)
    if name in declared:
        raise SchemaError(f"column {name!r} is declared twice", next_step="keep one of them", column=name)
    declared[name] = type_


def split_list(text: str) -> list[str]:
    """Return the parts between commas, but for commas inside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]
