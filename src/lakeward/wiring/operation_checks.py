"""What `lakeward doctor` looks at in a workspace that works: each check is a function, and `CHECKS` is the list."""

from __future__ import annotations

import importlib.util
import ipaddress
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from lakeward.control.schema import HEAD
from lakeward.control.standing import at_work, clock_and_revision, connected, standing
from lakeward.wiring.check import Check
from lakeward.wiring.workspace import Workspace

CLOCK_SECONDS = 5.0
"""Clocks may be so far apart: nothing is decided by ours, but its times stand in logs and in rows of people."""

ROOM_BYTES = 1 << 30
"""Less free space than this is too little for a copy of anything."""

CROWDED = 0.8
"""The share of the server's connections that may be taken."""

EXTRAS: Final = {
    "server": ("fastapi", "uvicorn", "procrastinate"),
    "telemetry": ("opentelemetry.sdk", "openlineage.client"),
    "models": ("onnxruntime", "sklearn"),
    "dlt": ("dlt",),
}
"""Extras of the package, by modules that each brings."""


def _connection(workspace: Workspace) -> Iterator[Check]:
    found = connected(workspace.database)
    expected = workspace.database.port
    pooled = found.port is not None and expected is not None and found.port != expected
    way = "through a pooler" if pooled else "by a socket" if found.port is None else "directly"
    detail = f"{way}; {found.connections} of {found.most} connections taken, {found.bytes / 1e6:,.1f} MB"
    step = "let the server take more (max_connections), or put a pooler before it"
    yield Check("connections", found.connections < CROWDED * found.most, detail, step)
    right = found.revision == HEAD
    yield Check("migrations", right, f"at {found.revision}", None if right else f"this lakeward knows {HEAD}: upgrade")


def _clock(workspace: Workspace) -> Iterator[Check]:
    before = time.time()
    theirs, _ = clock_and_revision(workspace.database)
    # Half of the way there and back is as good a guess as any.
    ours = datetime.fromtimestamp((before + time.time()) / 2, UTC)
    apart = abs((ours - theirs).total_seconds())
    detail = f"{apart:.1f} s apart from the database's"
    yield Check("clock", apart <= CLOCK_SECONDS, detail, "let both machines keep time (NTP)")


def _room(workspace: Workspace) -> Iterator[Check]:
    settings = workspace.settings.values
    places = {"home": settings.home, "warehouse": settings.warehouse or None}
    for name, place in places.items():
        if place is None or "://" in str(place):
            continue
        folder = next((each for each in (Path(place), *Path(place).absolute().parents) if each.exists()), None)
        if folder is not None:
            free = shutil.disk_usage(folder).free
            step = "free space: `lakeward maintain` removes what nothing needs"
            yield Check(f"disk of {name}", free > ROOM_BYTES, f"{free / 1e9:,.1f} GB free at {folder}", step)


def _datasets(workspace: Workspace) -> Iterator[Check]:
    found = standing(workspace.database)
    diverged = [each.name for each in workspace.status() if each.status == "diverged"] if found.diverged else []
    names = f": {', '.join(diverged)}" if diverged else ""
    step = f"lakeward ledger adopt {diverged[0]}, or ledger restore: see docs/reliability.md" if diverged else None
    yield Check("diverged datasets", not diverged, f"{found.diverged} of {found.datasets}{names}", step)
    behind = "lakeward status names them; `lakeward maintain` brings what they missed"
    yield Check("datasets behind", not found.behind, f"{found.behind} of {found.datasets}", behind)
    yield Check("stale datasets", True, f"{found.stale} of {found.datasets}", "lakeward build" if found.stale else None)


def _leftovers(workspace: Workspace) -> Iterator[Check]:
    found = standing(workspace.database)
    detail = f"{found.open} open, {found.abandoned} of them left behind, {found.unpublished} to be published"
    well = not found.abandoned and not (found.unpublished and not found.open)
    yield Check("transactions", well, detail, "lakeward ledger recover")


def _workers(workspace: Workspace) -> Iterator[Check]:
    found = at_work(workspace.database)
    idle = found.waiting > 0 and found.alive == 0
    detail = f"{found.alive} heard of in the last minute, {found.waiting} jobs wait"
    yield Check("workers", not idle, detail, "lakeward worker")


def _server(workspace: Workspace) -> Iterator[Check]:
    server = workspace.settings.values.server
    alone = _loopback(server.host)
    open_to_all = server.auth == "off"
    where = "this machine only" if alone else "which other machines reach"
    detail = f"listens on {server.host}, {where}; server.auth is {server.auth}"
    if alone and not (open_to_all and server.hosts):
        yield Check("server", True, detail)
    elif open_to_all:
        step = 'let who asks log in: server.auth = "on", see docs/access.md'
        yield Check("server", False, f"{detail}: whoever reaches it may do all", step)
    else:
        yield Check("server", True, detail, "put a proxy with TLS before it: docs/operations.md")


def _extras(workspace: Workspace) -> Iterator[Check]:
    for extra, modules in EXTRAS.items():
        there = all(_is_there(module) for module in modules)
        yield Check(
            f"extra {extra}",
            True,
            "installed" if there else "not installed",
            None if there else f"pip install 'lakeward[{extra}]'",
        )


CHECKS: Final[tuple[Callable[[Workspace], Iterator[Check]], ...]] = (
    _connection,
    _clock,
    _room,
    _datasets,
    _leftovers,
    _workers,
    _server,
    _extras,
)


def operation_checks(workspace: Workspace) -> Iterator[Check]:
    """Look at all of it."""
    for check in CHECKS:
        yield from check(workspace)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or socket.getfqdn(host) == "localhost"


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
