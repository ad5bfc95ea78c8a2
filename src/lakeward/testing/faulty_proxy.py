"""A proxy in front of an HTTP catalog that fails on demand: the answer is lost, late, wrong or never comes.

    with FaultyProxy("http://127.0.0.1:8181") as proxy:
        proxy.inject(FAULTS["504-after"], method="POST", path=r"/tables/orders$")
        ...                                       # the commit arrives, its answer does not

What matters is whether the catalog has done what it was asked: a client can't tell "500-after" from "500-before". A
catalog whose configuration sends clients to an address of its own (`overrides.uri`) gets past the proxy.
"""

from __future__ import annotations

import http.client
import re
import threading
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from lakeward.testing.loopback_server import LoopbackServer, Reply, Request

FORWARD_SECONDS = 120.0
"""How long the target may take for one request."""

_HOP = {
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}


@dataclass(frozen=True)
class Fault:
    """What becomes of one request.

    Args:
        name: for people.
        forwards: how often it is passed on: 0 never, 1 once, 2 as by a client or gateway that resends it.
        status: the answer, in place of the target's; None: the target's own (after the last time).
        closes: hang up instead of answering.
        cut: hang up in the middle of the answer's body.
        delay: seconds to wait before the answer.
        held: answer now, and pass it on when `Injection.release` is called.
    """

    name: str
    forwards: int = 1
    status: int | None = None
    closes: bool = False
    cut: bool = False
    delay: float = 0.0
    held: bool = False


def delayed(seconds: float) -> Fault:
    """Pass the request on, and its answer back after some seconds."""
    return Fault(f"delayed-{seconds:g}s", delay=seconds)


FAULTS = MappingProxyType(
    {
        fault.name: fault
        for fault in (
            Fault("500-after", status=500),
            Fault("502-after", status=502),
            Fault("503-after", status=503),
            Fault("504-after", status=504),
            Fault("500-before", forwards=0, status=500),
            Fault("503-before", forwards=0, status=503),
            Fault("closed-after", closes=True),
            Fault("closed-before", forwards=0, closes=True),
            Fault("cut", cut=True),
            Fault("garbage-after", status=200),
            Fault("409-before", forwards=0, status=409),
            Fault("409-after", status=409),
            Fault("resent", forwards=2),
            Fault("504-late", forwards=0, status=504, held=True),
        )
    }
)
"""Every fault that is over at once, by name."""


@dataclass(frozen=True)
class Seen:
    """One request that came by; `status` is what the client got, None if nothing."""

    method: str
    target: str
    status: int | None


class Injection:
    """One fault that was ordered, and what it has hit."""

    def __init__(self, proxy: FaultyProxy, fault: Fault, method: str, path: str, nth: int, times: int | None) -> None:
        self._proxy = proxy
        self.fault = fault
        self._method = method
        self._path = re.compile(path)
        self._first = nth
        self._times = times
        self._matched = 0
        self._held: list[Request] = []
        self.hits = 0
        """How many requests it was done to."""

    def due(self, request: Request) -> bool:
        """Count the request if it matches, and say whether it is one to be hit. The proxy calls this."""
        if request.method != self._method or not self._path.search(request.target):
            return False
        self._matched += 1
        if self._matched < self._first or (self._times is not None and self._matched >= self._first + self._times):
            return False
        self.hits += 1
        if self.fault.held:
            self._held.append(request)
        return True

    def release(self) -> list[int]:
        """Pass on what a `held` fault kept back, and return the target's answers: the late arrival of a request."""
        held, self._held = self._held, []
        return [self._proxy.forward(request).status for request in held]


class FaultyProxy(LoopbackServer):
    """Passes requests on to one target, except for those that a fault was ordered for.

    Args:
        target_url: `http://host:port` or `https://…`, with a base path or without.
    """

    def __init__(self, target_url: str) -> None:
        super().__init__()
        self._target = urlsplit(target_url)
        self._lock = threading.Lock()
        self._injections: list[Injection] = []
        self.seen: list[Seen] = []
        """Every request, in the order of its answer."""

    def inject(
        self, fault: Fault, *, method: str = "POST", path: str = "", nth: int = 1, times: int | None = 1
    ) -> Injection:
        """Order a fault.

        Args:
            fault: what to do.
            method: the requests' method.
            path: a regular expression that is searched in the path and query, percent signs not decoded.
            nth: the first matching request to hit, from 1, counted from now.
            times: how many of them; None: until `clear`.
        """
        injection = Injection(self, fault, method, path, nth, times)
        with self._lock:
            self._injections.append(injection)
        return injection

    def clear(self) -> None:
        """Forget every fault; what a `held` one keeps back can still be released."""
        with self._lock:
            self._injections = []

    def answer(self, request: Request) -> Reply | None:
        """Pass a request on, or do to it what was ordered."""
        with self._lock:
            due = [injection for injection in self._injections if injection.due(request)]
        reply = self._do(due[0].fault, request) if due else self.forward(request)
        with self._lock:
            self.seen.append(Seen(request.method, request.target, None if reply is None else reply.status))
        return reply

    def _do(self, fault: Fault, request: Request) -> Reply | None:
        replies = [self.forward(request) for _ in range(fault.forwards)]
        self.stopping.wait(fault.delay)
        if fault.closes:
            return None
        if fault.status is not None:
            return _made_up(fault.status)
        return Reply(replies[-1].status, replies[-1].body, replies[-1].headers, cut=fault.cut)

    def forward(self, request: Request) -> Reply:
        """Pass a request on and return the target's answer, 502 if it has none."""
        kind = http.client.HTTPSConnection if self._target.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._target.netloc, timeout=FORWARD_SECONDS)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        try:
            connection.request(
                request.method, f"{self._target.path.rstrip('/')}{request.target}", request.body or None, headers
            )
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException):
            return _made_up(502)
        finally:
            connection.close()
        kept = {name: value for name, value in response.getheaders() if name.lower() not in {*_HOP, "date", "server"}}
        return Reply(response.status, body, kept)


def _made_up(status: int) -> Reply:
    """Return what a gateway would answer: a page for people, or a conflict in the form that catalogs give it."""
    if status == 409:
        error = {"message": "the request was refused by the proxy", "type": "CommitFailedException", "code": 409}
        return Reply.of_json(409, {"error": error})
    return Reply(status, f"<html><body>{status}</body></html>".encode(), {"Content-Type": "text/html"})
