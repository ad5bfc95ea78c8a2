"""Parity: whether the two arms of a dataset agree, and which differences are accepted."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Body, Query, Response
from fastapi.responses import JSONResponse

from lakeward.server.documents.parity import (
    Comparison,
    ComparisonPage,
    NewRule,
    Recheck,
    Rechecked,
    Rule,
    RuleList,
    Verified,
)
from lakeward.server.number_pages import Before, Limit, cut
from lakeward.server.queueing import ACCEPTED, queued, waited
from lakeward.server.rooms import Here
from lakeward.server.routing import NAME, Name, noun
from lakeward.server.rules import needs

router = noun("parity")

READ = needs("flip.read", of="name")


@router.get(f"{NAME}/comparisons", summary="List comparisons", dependencies=[READ])
def list_comparisons(
    rooms: Here,
    name: Name,
    kind: Annotated[str | None, Query(description="write, read or full; none: all")] = None,
    limit: Limit = 100,
    page: Before = None,
) -> ComparisonPage:
    """What comparisons of a dataset's arms have found, newest first."""
    dataset = rooms.workspace.dataset(name).name
    found = rooms.workspace.comparisons.found(dataset, kind, before=page, most=limit + 1)
    shown, following = cut(found, limit, lambda each: each.id)
    return ComparisonPage(dataset=dataset, comparisons=[Comparison.of(each) for each in shown], next=following)


@router.post(f"{NAME}/verify", summary="Compare all rows", dependencies=[needs("parity.check", of="name")])
def verify(rooms: Here, name: Name) -> Verified:
    """Compare all rows on every arm that holds the newest version. Arms that differ are a problem (409)."""
    with waited(rooms):
        return Verified.of(rooms.workspace.comparisons.verify(name))


@router.get(f"{NAME}/accepted", summary="List accepted differences", dependencies=[READ])
def list_rules(rooms: Here, name: Name) -> RuleList:
    """The columns whose differences are accepted for a time, also where that time is over."""
    rules = rooms.workspace.comparisons.rules(name)
    return RuleList(dataset=rooms.workspace.dataset(name).name, rules=[Rule.of(each) for each in rules])


@router.post(f"{NAME}/accepted", summary="Accept differences", dependencies=[needs("parity.ignore", of="name")])
def accept(rooms: Here, name: Name, wanted: NewRule) -> Rule:
    """Accept differences in a column until a moment. Rows that are missing on an arm are never accepted."""
    return Rule.of(
        rooms.workspace.comparisons.ignore(
            name, wanted.column, reason=wanted.reason, until=wanted.until, owner=wanted.owner
        )
    )


@router.delete(
    f"{NAME}/accepted",
    summary="Let differences count again",
    dependencies=[needs("parity.count", of="name")],
    status_code=HTTPStatus.NO_CONTENT,
    response_class=Response,
)
def count_again(rooms: Here, name: Name, column: Annotated[str, Query(description="whose")]) -> None:
    """Take the rule of a column away."""
    rooms.workspace.comparisons.count_again(name, column)


@router.post(
    "/parity/recheck",
    summary="Compare mirrored datasets",
    dependencies=[needs("parity.check", anywhere=True)],
    response_model=Rechecked,
    responses=ACCEPTED,
)
def recheck(rooms: Here, wanted: Annotated[Recheck, Body(default_factory=Recheck)]) -> Rechecked | JSONResponse:
    """Compare all rows of mirrored datasets anew, one after the other. What is found is kept."""
    if not wanted.wait:
        given = {"datasets": wanted.datasets, "older_than": wanted.older_than_seconds}
        return queued(rooms, "recheck", given)
    with waited(rooms):
        found = rooms.workspace.comparisons.recheck(*wanted.datasets, older_than=wanted.older_than_seconds)
    return Rechecked.plain(datasets=[each.to_json() for each in found])
