"""Finds a command in the tree of commands, and what is given for its parameters, without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakeward.cli.remote.commands import COMMANDS

Group = Any
"""Typer keeps a copy of click for itself, whose types it does not name."""


def words_of(root: Group, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the command that arguments begin with; none: they begin with none that there is."""
    words: list[str] = []
    node = root
    for word in arguments:
        node = getattr(node, "commands", {}).get(word)
        if node is None:
            break
        words.append(word)
    return tuple(words) if tuple(words) in COMMANDS else ()


def values_of(root: Group, words: Sequence[str], arguments: Sequence[str]) -> dict[str, Any]:
    """Return what arguments give for the parameters of a command.

    Args:
        root: the tree.
        words: of the command, with which the arguments begin.
        arguments: all of them.

    Raises:
        Exception: they can't be parsed, or ask for help: running them tells.
    """
    node = root
    for word in words:
        node = node.commands[word]
    context = node.make_context(words[-1], list(arguments[len(words) :]))
    return dict(context.params)
