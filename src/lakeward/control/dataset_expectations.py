"""What datasets themselves are expected to be: declared once, and judged in every version, whoever writes it.

A writer is told by its intent (see `Ledger.try_open`), so that what is in force when it begins is what it is judged by.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lakeward.control.db import Database, Queries

QUERIES = Queries.beside(__file__)


class DatasetExpectations:
    """The declarations of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, dataset_id: int) -> list[Any]:
        """Return what a dataset is expected to be, in the form of a pipeline's; nothing, if nothing is."""
        rows = self._database.fetch(QUERIES["of"], {"dataset_id": dataset_id})
        return list(rows[0]["expectations"] or ()) if rows else []

    def put(self, dataset_id: int, dataset: str, expectations: Sequence[Any], *, actor: str) -> bool:
        """Declare it, in place of what was; say whether that changed anything. The audit log gets both.

        Args:
            dataset_id, dataset: which one, and its name.
            expectations: in the form of a pipeline's; none: nothing is expected any more.
            actor: who says so.
        """
        text = json.dumps(list(expectations), ensure_ascii=False) if expectations else None
        values = {"dataset_id": dataset_id, "dataset": dataset, "expectations": text, "actor": actor}
        return bool(self._database.fetch(QUERIES["put"], values))
