"""Spans of OpenTelemetry: one for each happening, inside that of what is around it.

They are sent by a thread of OpenTelemetry's, some at a time; a collector that does not answer costs the work nothing,
and the spans are lost. A request that brings a `traceparent` goes on with its caller's trace.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from uuid import UUID

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import lakeward
from lakeward.happenings import Happening, listen

PATH = "/v1/traces"
"""Where a collector takes spans, below its address (OTLP 1.9, "OTLP/HTTP Request")."""

SEND_SECONDS = 5.0
"""So long may it take to send some spans."""

_lock = threading.Lock()
_users: dict[str, int] = {}
_ends: dict[str, Callable[[], None]] = {}


def start(endpoint: str, service: str) -> Callable[[], None]:
    """Send spans of all that happens in this process; return what ends that.

    Several workspaces of one process with one collector share what sends, so that nothing is sent twice.

    Args:
        endpoint: the collector's address.
        service: what traces call this process.
    """
    with _lock:
        _users[endpoint] = _users.get(endpoint, 0) + 1
        if _users[endpoint] == 1:
            spans = Spans(endpoint, service)
            ends = ExitStack()
            ends.callback(spans.close)
            ends.callback(listen(spans))
            _ends[endpoint] = ends.close

    def stop() -> None:
        with _lock:
            _users[endpoint] -= 1
            last = _ends.pop(endpoint) if not _users[endpoint] else None
        if last is not None:
            last()

    return stop


class Spans:
    """Makes a span of each happening.

    Args:
        endpoint, service: see `start`.
    """

    def __init__(self, endpoint: str, service: str) -> None:
        url = endpoint if endpoint.endswith(PATH) else endpoint.rstrip("/") + PATH
        resource = Resource.create({"service.name": service, "service.version": lakeward.__version__})
        # Of its own: one that is the process's may be that of whoever uses Lakeward as a library.
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(url, timeout=SEND_SECONDS)))
        self._tracer = self._provider.get_tracer("lakeward", lakeward.__version__)
        self._open: dict[UUID, trace.Span] = {}

    def begun(self, happening: Happening) -> None:
        """Begin its span."""
        around = self._open.get(happening.around.id) if happening.around is not None else None
        kind = trace.SpanKind.SERVER if happening.name == "request" else trace.SpanKind.INTERNAL
        within = trace.set_span_in_context(around, Context()) if around is not None else _given(happening)
        self._open[happening.id] = self._tracer.start_span(happening.name, within, kind)

    def ended(self, happening: Happening) -> None:
        """End it, with the facts that are known by now."""
        span = self._open.pop(happening.id, None)
        if span is None:
            return
        for name, value in happening.facts.items():
            if isinstance(value, str | int | float | bool):
                span.set_attribute(f"lakeward.{name}", value)
        if route := happening.facts.get("route"):
            span.update_name(f"{happening.facts['method']} {route}")
            span.set_attribute("http.route", route)
            span.set_attribute("http.request.method", happening.facts["method"])
            span.set_attribute("http.response.status_code", happening.facts["status"])
        if happening.error is not None:
            # Its kind, and not its text, which may have values of rows in it.
            span.set_attribute("error.type", type(happening.error).__name__)
            span.set_status(trace.StatusCode.ERROR, type(happening.error).__name__)
        span.end()

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


def _given(happening: Happening) -> Context:
    """Return the context that the caller of a request says it is part of, if it says so."""
    traceparent = happening.facts.get("traceparent")
    carrier = {"traceparent": traceparent} if traceparent else {}
    return TraceContextTextMapPropagator().extract(carrier, Context())
