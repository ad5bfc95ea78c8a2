"""Runs the application until it is told to stop; requests that are under way are answered first."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import pyarrow as pa
import uvicorn

from lakeward.access.guard import closed
from lakeward.compute.scratch import Scratch
from lakeward.errors import UsageError
from lakeward.happenings import listen
from lakeward.jobs.worker import InProcessWorker
from lakeward.server.app import create_app
from lakeward.server.connection import Connection
from lakeward.server.logins import Logins
from lakeward.server.oidc import Oidc
from lakeward.server.perimeter import LOOPBACK
from lakeward.server.rates import Rates
from lakeward.server.rooms import Rooms
from lakeward.wiring.sections import ServerSection
from lakeward.wiring.workspace import Workspace

GRACE_SECONDS = 30
"""So long may a request go on when the server is told to stop."""

CLOSING_SECONDS = 10
"""So long may one that is then broken off take to let go of what it holds."""


def serve(workspace: Workspace, settings: ServerSection, ready: Callable[[str], None]) -> None:
    """Serve a workspace until SIGINT or SIGTERM.

    Args:
        workspace: what is served.
        settings: where, and within which limits.
        ready: is told the URL once connections are taken.

    Raises:
        UsageError: the address can't be listened on; or others could reach it without a login.
    """
    logins = logins_for(workspace, settings)
    # Arrow's own pool keeps, for each of many threads, what they once had: after a minute of load, 360 MB of it.
    pa.set_memory_pool(pa.system_memory_pool())
    listener = _listening(settings.host, settings.port)
    host, port = listener.getsockname()[:2]
    # In a directory that the next one who opens the workspace removes if this process is killed.
    with listener, closed(), closing(Scratch(workspace.upkeep.scratch)) as bodies, ExitStack() as undo:
        app = create_app(
            workspace,
            bodies.path,
            page_rows=settings.page_rows,
            body_limit=settings.body_limit_bytes,
            streams=settings.streams,
            stall_seconds=settings.stall_seconds,
            hosts={*LOOPBACK, settings.host, *settings.hosts},
            logins=logins,
        )
        rooms: Rooms = app.state.rooms
        if settings.worker if settings.worker is not None else workspace.settings.values.database_url is None:
            undo.enter_context(InProcessWorker(workspace))
        undo.callback(listen(rooms.measures))
        undo.callback(rooms.commands.nursery.close)
        config = uvicorn.Config(
            app,
            http=Connection,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            server_header=False,
        )
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        _Server(config, app.state.rooms.end_streams).run([listener])


def asks(workspace: Workspace, settings: ServerSection) -> bool:
    """Say whether who asks has to log in.

    Raises:
        UsageError: they need not, and somebody else than the user of this machine could ask.
    """
    alone = settings.host in LOOPBACK and workspace.settings.values.database_url is None
    if settings.auth == "off" and not alone:
        raise UsageError(
            "the server can go without logins only on an address of this machine, and with its own Postgres: "
            f"not at {settings.host}{'' if settings.host not in LOOPBACK else ' with a database that others have'}",
            safe="nothing was started",
            next_step="set server.auth to on, or leave it out; `lakeward token add --user NAME --role admin` lets the "
            "first one in",
            host=settings.host,
        )
    return settings.auth == "on" or not alone


def logins_for(workspace: Workspace, settings: ServerSection) -> Logins | None:
    """Return how people log in; None: nobody is asked for a name.

    Raises:
        UsageError: see `asks`.
        SettingsError: a rate, or the secret of the provider of names, can't be read.
    """
    if not asks(workspace, settings):
        return None
    oidc = Oidc(settings.oidc, settings.oidc.issuer) if settings.oidc.issuer is not None else None
    return Logins(workspace.access, Rates(settings.rate_limit), settings.session_hours, oidc)


class _Server(uvicorn.Server):
    """Ends well when it is told to, where its base would then let the signal end the process."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._end_streams()
        await super().shutdown(sockets)
        # Those that were broken off still close what they read from; the workspace is closed after that.
        if left := list(self.server_state.tasks):
            await asyncio.wait(left, timeout=CLOSING_SECONDS)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise UsageError(
            f"{host}:{port} can't be listened on: {error.strerror}",
            safe="nothing was started",
            next_step="choose another: --port 0 takes a free one",
            host=host,
            port=port,
        ) from None
