"""Decides whether a command is run here or on a server."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from lakeward.cli.remote.commands import COMMANDS, Local, Remote, refused
from lakeward.cli.remote.parsing import Group, values_of, words_of
from lakeward.cli.remote.target import Target
from lakeward.errors import UsageError

if TYPE_CHECKING:
    from lakeward.cli.remote.client import Client

NOT_RUN: tuple[type[Exception], ...] = (typer.Exit, typer.BadParameter.__mro__[1])
"""Arguments that ask for help, or can't be parsed."""

READS_INPUT = ("sql", "query")
"""Parameters that a `-` stands for standard input in."""


def run_there(root: Group, arguments: Sequence[str], target: Target) -> int | None:
    """Run a command on a server, and return its exit code; None: it is to be run here, as help is, or what is mistyped.

    Args:
        root: the tree of commands.
        arguments: the command's words and its own.
        target: the server.

    Raises:
        UsageError: the command is for the machine of the workspace alone.
        ServerError: the server can't be reached, or went away.
        LakewardError: it refuses the command.
    """
    words = words_of(root, arguments)
    command = COMMANDS.get(words)
    if command is None or isinstance(command, Local):
        return None
    try:
        values = values_of(root, words, arguments)
    except NOT_RUN:
        # What is wrong with them, or asked for instead, is told by running them here: they are parsed before.
        return None
    if not isinstance(command, Remote):
        raise refused(words, command)
    if values.get("home") is not None:
        raise UsageError(
            "--home names a workspace of this machine, and the command goes to a server",
            safe="nothing was sent",
            next_step="leave out --home, or --server and LAKEWARD_SERVER",
        )
    client: Client
    with importlib.import_module("lakeward.cli.remote.client").Client(target) as client:
        if words == ("dataset", "edit") and values["export"] is None and values["edited"] is None:
            edited: int = importlib.import_module("lakeward.cli.remote.editing").edit_here(client, arguments, values)
            return edited
        reads = any(values.get(each) == "-" for each in READS_INPUT)
        return client.run(words, arguments, values, input=sys.stdin.read() if reads else "")
