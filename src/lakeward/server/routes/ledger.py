"""The ledger: the transactions of every dataset, and finishing what dead processes left."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import Body, Query

from lakeward.server.documents.document import DryRun
from lakeward.server.documents.ledger import Recovered, Recovery, Transaction, TransactionPage
from lakeward.server.number_pages import Before, Limit, cut
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.rules import needs

router = noun("ledger")


class Status(StrEnum):
    """Of a transaction."""

    open = "open"
    committed = "committed"
    aborted = "aborted"


@router.get("/ledger", summary="List transactions", dependencies=[needs("ledger.read", anywhere=True)])
def list_transactions(
    rooms: Here,
    status: Annotated[Status | None, Query(description="of these only")] = None,
    limit: Limit = 100,
    page: Before = None,
) -> TransactionPage:
    """The transactions of all datasets, newest first."""
    found = rooms.workspace.transactions(status=status, before=page, most=limit + 1)
    shown, following = cut(found, limit, lambda each: each.id)
    return TransactionPage(transactions=[Transaction.of(each) for each in shown], next=following)


@router.post("/ledger/recover", summary="Recover", dependencies=[needs("ledger.recover")])
def recover(rooms: Here, wanted: Annotated[Recovery, Body(default_factory=Recovery)]) -> Recovered | DryRun:
    """Finish or remove what processes that died left behind. Repeating it does nothing more."""
    if wanted.dry_run:
        return DryRun(actions=[each.explain() for each in rooms.workspace.recoverable() if not each.held])
    return Recovered.plain(recovered=[dict(vars(each)) for each in rooms.workspace.recover()])
