"""Spans come to a collector as its own protocol has them: builds, writes and their steps, requests of a caller."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from lakeward.errors import LakewardError
from lakeward.happenings import happening
from support.receiver import Opens, Receiver

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def sent(receiver: Receiver) -> list[Span]:
    spans = []
    for path, _, body in receiver.got:
        assert path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            assert names["service.name"] == "shop"
            spans += [span for scope in resource.scope_spans for span in scope.spans]
    receiver.got.clear()
    return spans


def attributes(span: Span) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes}


def test_a_build_is_one_trace_with_a_span_for_each_step(opens: Opens, receiver: Receiver) -> None:
    with opens(f'otlp_endpoint = "{receiver.url}/"\nservice_name = "shop"') as workspace:
        workspace.build("totals")
    spans = sent(receiver)
    (build,) = [each for each in spans if each.name == "build"]
    (write,) = [each for each in spans if each.name == "write"]
    assert {each.trace_id for each in spans} == {build.trace_id}
    assert write.parent_span_id == build.span_id
    steps = [each.name for each in sorted(spans, key=lambda span: span.start_time_unix_nano) if "." in each.name]
    assert steps == ["write.intent", "write.compute", "write.prepare", "write.audit", "write.decide"]
    assert all(each.parent_span_id == write.span_id for each in spans if "." in each.name)
    assert attributes(build)["lakeward.pipeline"] == "totals"
    assert attributes(write)["lakeward.dataset"] == "main.told.totals"
    assert attributes(write)["lakeward.build"]


def test_what_fails_is_marked_without_what_its_error_says(opens: Opens, receiver: Receiver) -> None:
    with opens(f'otlp_endpoint = "{receiver.url}"\nservice_name = "shop"') as workspace:
        workspace.dataset("main.told.orders").write([{"customer": "secret", "amount": 5000}])
        with pytest.raises(LakewardError):
            workspace.build("totals")
        workspace.dataset("main.told.orders").write([{"customer": "a", "amount": 1}], mode="replace")
    failed = [each for each in sent(receiver) if each.status.code == Status.STATUS_CODE_ERROR]
    assert {each.name for each in failed} == {"build", "write", "write.audit"}
    assert {attributes(each)["error.type"] for each in failed} == {"ExpectationFailed"}
    assert "secret" not in str(failed)


def test_two_workspaces_send_nothing_twice_and_a_caller_goes_on_in_its_trace(opens: Opens, receiver: Receiver) -> None:
    settings = f'otlp_endpoint = "{receiver.url}"\nservice_name = "shop"'
    with opens(settings), opens(settings):
        parent = f"00-{TRACE}-{CALLER}-01"
        with happening("request", method="GET", route="/x", traceparent=parent) as request:
            request.facts["status"] = 200
    (span,) = sent(receiver)
    assert (span.name, span.kind) == ("GET /x", Span.SPAN_KIND_SERVER)
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, CALLER)


def test_a_collector_that_is_gone_costs_the_work_nothing(opens: Opens, closed_port: int) -> None:
    with opens(f'otlp_endpoint = "http://127.0.0.1:{closed_port}"') as workspace:
        assert workspace.build("totals")[0].build_id is not None
