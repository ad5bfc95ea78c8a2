"""What became of a decide whose answer was lost: the ledger knows, and is asked until Postgres answers again."""

from __future__ import annotations

from lakeward.clock import Clock
from lakeward.control.ledger import Ledger
from lakeward.control.records import OpenTransaction
from lakeward.errors import DatabaseUnavailable, OutcomeUnknown

DECIDE_LOOKS = 5
"""How often the ledger is asked."""


def outcome_of(transaction: OpenTransaction, ledger: Ledger, clock: Clock) -> str:
    """Return the status of a transaction, which is that of its whole build.

    Raises:
        OutcomeUnknown: Postgres does not answer.
    """
    for look in range(DECIDE_LOOKS):
        try:
            return ledger.status(transaction)
        except DatabaseUnavailable as error:
            if look == DECIDE_LOOKS - 1:
                raise OutcomeUnknown(
                    f"Postgres went away while version {transaction.version} of dataset {transaction.dataset} was "
                    "decided",
                    safe="it is committed as a whole or not at all, and the ledger knows which",
                    next_step="when Postgres is back: `lakeward ledger recover`, then `lakeward dataset history "
                    f"{transaction.dataset}`",
                    dataset=transaction.dataset,
                    version=transaction.version,
                ) from error
            clock.sleep(0.2 * 2**look)
    raise AssertionError("unreachable")
