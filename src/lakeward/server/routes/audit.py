"""The audit log: who changed what, with what was there before and after."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import AwareDatetime

from lakeward.server.documents.audit import AuditLine, AuditLog
from lakeward.server.number_pages import Limit
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.rules import needs

router = noun("audit")


@router.get("/audit", summary="Read the audit log", dependencies=[needs("audit.read")])
def read_audit_log(
    rooms: Here,
    who: Annotated[str | None, Query(description="by this one only")] = None,
    action: Annotated[str | None, Query(description="dataset.drop, or dataset: all of a noun")] = None,
    subject: Annotated[str | None, Query(description="the full name of what was changed")] = None,
    since: Annotated[AwareDatetime | None, Query(description="from when on")] = None,
    limit: Limit = 100,
) -> AuditLog:
    """Lines of the log, and what the ledger has committed, newest first."""
    found = rooms.workspace.access.audit(who=who, action=action, subject=subject, since=since, most=limit)
    return AuditLog(lines=[AuditLine.of(each) for each in found])
