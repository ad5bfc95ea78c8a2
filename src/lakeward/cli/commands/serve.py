"""`lakeward serve`: the HTTP API of a workspace."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.session import Session, heavy
from lakeward.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "serve")(serve)


def serve(
    session: Session,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="An address of this machine; else server.host.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, metavar="PORT", help="0: a free one; else server.port.")
    ] = None,
    worker: Annotated[
        bool | None,
        typer.Option(
            "--worker/--no-worker",
            show_default=False,
            help="Run jobs in this process, too; default: where the workspace has its own Postgres.",
        ),
    ] = None,
) -> None:
    """Serve datasets over HTTP, for other programs and for browsers.

    docs/http.md tells what can be asked for; /api/v1/openapi.json describes it for programs. On an address of this
    machine, with the workspace's own Postgres, nobody is asked for a name; everywhere else who asks has to log in, see
    docs/access.md. What pages of other sites send is refused. Ctrl-C or SIGTERM ends it, when what is under way is
    answered.
    """
    try:
        serving = heavy("lakeward.server.serving")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the server needs {error.name}, which is not installed",
            safe="nothing was started",
            next_step="pip install 'lakeward[server]'",
        ) from None
    session.log_as_service()
    with session.workspace() as workspace:
        given = {"host": host, "port": port, "worker": worker}
        settings = workspace.settings.values.server.model_copy(
            update={name: value for name, value in given.items() if value is not None}
        )

        login = serving.asks(workspace, settings)

        def ready(url: str) -> None:
            who = "who asks has to log in" if login else "no login: whoever uses this machine may do all"
            told = {"url": url, "login": "required" if login else "none"}
            session.show(told, [f"serving at {url} ({who}); Ctrl-C ends it"])
            sys.stdout.flush()

        serving.serve(workspace, settings, ready)
