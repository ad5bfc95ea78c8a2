"""Asks before a command takes something away: the name of the thing has to be typed."""

from __future__ import annotations

import sys

import typer

from lakeward.errors import UsageError


def confirm(name: str, instead: str = "--yes") -> None:
    """Ask for the thing's name.

    Args:
        name: of the thing.
        instead: the option that says the same.

    Raises:
        UsageError: another one was typed, or nobody is there to type.
    """
    safe = "nothing was changed"
    if not sys.stdin.isatty():
        raise UsageError(
            f"this has to be confirmed by typing {name}, and standard input is no terminal",
            safe=safe,
            next_step=f"repeat with {instead}; --dry-run shows what it would do",
            name=name,
        )
    typed = typer.prompt(f"Type {name} to go on", default="", show_default=False, err=True)
    if typed.strip() != name:
        raise UsageError(
            f"{typed.strip()!r} is not {name}", safe=safe, next_step=f"repeat, or give {instead}", name=name
        )
