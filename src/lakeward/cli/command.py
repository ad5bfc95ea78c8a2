"""Registers a command: every one takes the same common options, and gets a `Session` made of them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from lakeward.cli import served
from lakeward.cli.session import PIPE_CLOSED, OutputFormat, Session, forget_stdout

Body = Callable[..., None]

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="The workspace directory. Else LAKEWARD_HOME, else `home` in lakeward.toml.",
    ),
]
OutputOption = Annotated[
    OutputFormat,
    typer.Option("--output", metavar="text|json", help="With json, standard output holds one JSON document."),
]
VerboseOption = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        help="Log more to standard error; twice: everything. Errors show a traceback.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and only errors in the log.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be done, in order, and change nothing.")
]

COMMON = (
    inspect.Parameter("home", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=HomeOption),
    inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default=OutputFormat.text, annotation=OutputOption),
    inspect.Parameter("verbose", inspect.Parameter.KEYWORD_ONLY, default=0, annotation=VerboseOption),
    inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QuietOption),
)
"""The options of every command."""


def command(app: typer.Typer, name: str) -> Callable[[Body], Body]:
    """Register a function as the command `name` of `app`.

    Its first parameter is the `Session`; the others are the command's own arguments and options. Its docstring is the
    help.
    """

    def register(body: Body) -> Body:
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        ]
        parameters = [*own, *COMMON]

        def run(**arguments: Any) -> None:
            common = {parameter.name: arguments.pop(parameter.name) for parameter in COMMON}
            if served.now is not None:
                arguments = served.now.taken(arguments)
            session = Session(**common)
            try:
                body(session, **arguments)
                sys.stdout.flush()
            except BrokenPipeError:
                # Caught before Typer does, which makes a plain failure of it.
                forget_stdout()
                raise typer.Exit(PIPE_CLOSED) from None
            finally:
                session.progress.close()

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__doc__ = body.__doc__
        run.__name__ = body.__name__
        app.command(name)(run)
        return body

    return register
