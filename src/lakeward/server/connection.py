"""A connection of the server: what lies in several places is sent without being put together, and it can be cut."""

from __future__ import annotations

import os
import socket
import struct
from typing import Any, Final

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from lakeward.server.lots import Gathered, Part

EXTENSION: Final = "lakeward.connection"
"""What a scope's `extensions` have it under: whoever finds it may send bodies that are `Gathered`, and cut it."""

_MOST: Final = 1024
"""So many parts are taken by one call of writev (POSIX, IOV_MAX)."""

_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""The system, too, lets go of what it would still have sent (POSIX, SO_LINGER)."""


class Connection(H11Protocol):
    """See uvicorn, which would copy each body several times until the socket has it: to frame it, and to wait."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.app = self._extended(self.app)

    def cut(self) -> None:
        """Break it off at once. What it has not sent goes, while an orderly end would wait until the client took it."""
        connection = self.transport.get_extra_info("socket")
        if not self.transport.is_closing():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.transport.abort()

    def _extended(self, app: Any) -> ASGIApp:
        async def extended(scope: Scope, receive: Receive, send: Send) -> None:
            async def sending(message: Message) -> None:
                if isinstance(message.get("body"), Gathered):
                    await self._send(message)
                else:
                    await send(message)

            scope.setdefault("extensions", {})[EXTENSION] = self
            await app(scope, receive, sending)

        return extended

    async def _send(self, message: Message) -> None:
        """Send a body that is not the last one."""
        if self.flow.write_paused and not self.cycle.disconnected:
            await self.flow.drain()
        if not self.cycle.disconnected:
            framed = self.conn.send_with_data_passthrough(h11.Data(data=message["body"]))
            self._write([part for each in framed or () for part in _parts_of(each)])

    def _write(self, parts: list[Part]) -> None:
        sent = 0
        if not self.transport.get_write_buffer_size():
            try:
                sent = os.writev(self.transport.get_extra_info("socket").fileno(), parts[:_MOST])
            except BlockingIOError:
                pass
            except OSError:
                # The client has gone; that its connection is lost is told to whoever waits for it.
                self.cut()
        for part in parts:
            if self.transport.is_closing():
                return
            if sent < len(part):
                self.transport.write(memoryview(part)[sent:])
            sent = max(0, sent - len(part))


def _parts_of(framed: Any) -> list[Part]:
    return list(framed.parts) if isinstance(framed, Gathered) else [framed]
