"""`lakeward serve`: the HTTP API of a workspace."""

from __future__ import annotations

import sys
from contextlib import nullcontext
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
        bool, typer.Option("--worker", help="Run jobs in this process, too, as `lakeward worker` does.")
    ] = False,
) -> None:
    """Serve datasets over HTTP, for other programs on this machine.

    docs/http.md tells what can be asked for; /api/v1/openapi.json describes it for programs. Nobody is asked for a
    name, and so nobody else is let in: only addresses of this machine are listened on, and what web pages send is
    refused. Ctrl-C or SIGTERM ends it, when what is under way is answered.
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
        given = {"host": host, "port": port}
        settings = workspace.settings.values.server.model_copy(
            update={name: value for name, value in given.items() if value is not None}
        )

        def ready(url: str) -> None:
            session.show({"url": url}, [f"serving at {url} for programs of this machine; Ctrl-C ends it"])
            sys.stdout.flush()

        beside = heavy("lakeward.jobs.worker").InProcessWorker(workspace) if worker else nullcontext()
        with beside:
            serving.serve(workspace, settings, ready)
