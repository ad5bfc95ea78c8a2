"""The numbers of the server and its workspace, for Prometheus."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from lakeward.server.rooms import Here
from lakeward.server.rules import needs

PREFIX = ""

router = APIRouter(tags=["operations"])


@router.get(
    "/metrics",
    summary="Read metrics",
    dependencies=[needs("metrics.read")],
    response_class=Response,
    responses={HTTPStatus.OK: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def read_metrics(rooms: Here) -> Response:
    """All metrics in Prometheus's text format. docs/operations.md tells what each is."""
    return Response(rooms.measures.text(), media_type=CONTENT_TYPE_LATEST)
