"""What the tests of keyed writes ask of every result."""

from __future__ import annotations

from typing import Any

import sqlalchemy

from lakeward import WriteResult
from lakeward.types.digest import Digest
from support.arms import HeldDataset

COUNTS = ("rows_in", "rows_added", "rows_updated", "rows_unchanged", "rows_deleted", "rows_skipped", "row_count")

_RECORDED = sqlalchemy.text(
    "SELECT row_count, digest_high, digest_low FROM lakeward.dataset_transactions "
    "WHERE dataset_id = :dataset_id AND version = :version AND status = 'committed'"
)


def counts(result: WriteResult) -> dict[str, Any]:
    """Return what a result counts, without what is zero."""
    return {name: getattr(result, name) for name in ("version", *COUNTS, "committed") if getattr(result, name)}


def recorded_digest(dataset: HeldDataset) -> Digest | None:
    """Return the digest that the ledger has of the head version."""
    if dataset.version == 0:
        return None
    parameters = {"dataset_id": dataset.created.id, "version": dataset.version}
    (row,) = dataset.workspace.database.fetch(_RECORDED, parameters)
    return None if row["digest_high"] is None else Digest.of_row(row.values())


def assert_digest_kept(dataset: HeldDataset, *, known: bool = False) -> None:
    """Check the recorded digest, if there is one, against that of the rows.

    Args:
        dataset: which one.
        known: there must be one, unless there is no version.
    """
    recorded = recorded_digest(dataset)
    assert recorded is not None or not known or dataset.version == 0, "the digest of the head is not known"
    if recorded is not None:
        assert recorded == dataset.digest()
