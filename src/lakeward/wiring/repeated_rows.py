"""Notices that an import has appended the rows that the one before it did: most often the same file, twice."""

from __future__ import annotations

from lakeward.control.history import History
from lakeward.control.tree import DatasetRecord
from lakeward.errors import LakewardError
from lakeward.storage.facade import Storage
from lakeward.storage.requests import WriteResult

COMPARED_ROWS = 1_000_000
"""So many rows are compared at most, and only where there are as many as before."""


def same_rows(history: History, storage: Storage, record: DatasetRecord, written: WriteResult) -> list[str]:
    """Say that the rows which were appended are those that the version before brought, if they are.

    Args:
        history: of datasets.
        storage: reads both versions' rows.
        record: the dataset.
        written: what was appended to it.
    """
    now, *earlier = history.transactions({record.id: record.name}, dataset_id=record.id, idle=False, most=2)
    before = earlier[0] if earlier else now
    alike = (now.verb, now.rows_in) == (before.verb, before.rows_in) and now.parent_version == before.version
    if now.version != written.version or not alike or not 0 < written.rows_in <= COMPARED_ROWS:
        return []
    try:
        added = storage.added_digest(record, before.version, now.version)
        if added != storage.added_digest(record, before.parent_version, before.version):
            return []
    except LakewardError:
        # They are there, whatever keeps them from being read.
        return []
    told = (
        f"version {before.version} brought the same rows: each is there twice now. An import that may be repeated "
        "has a name, by which the second one writes nothing: --idempotency-key NAME"
    )
    return [told]
