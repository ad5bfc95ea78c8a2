"""What datasets themselves are expected to be: declared once, and judged in every version, whoever writes it.

A writer is told by its intent (see `Ledger.try_open`), so that what is in force when it begins is what it is judged by.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lakeward.access.guard import require
from lakeward.access.principal import Place
from lakeward.control.audit import audit
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

    def put(self, dataset_id: int, dataset: str, expectations: Sequence[Any], *, actor: str, place: Place = ()) -> bool:
        """Declare it, in place of what was; say whether that changed anything. The audit log gets both.

        Args:
            dataset_id, dataset: which one, and its name.
            expectations: in the form of a pipeline's; none: nothing is expected any more.
            actor: who says so.
            place: of the dataset.

        Raises:
            Forbidden: whoever acts may not do it.
        """
        require("dataset.expect", place, dataset)
        text = json.dumps(list(expectations), ensure_ascii=False) if expectations else None
        with self._database.transaction() as connection:
            changed = connection.execute(QUERIES["put"], {"dataset_id": dataset_id, "expectations": text}).first()
            if changed is not None:
                after = list(expectations) or None
                audit(connection, actor, "dataset.expect", dataset, changed.expectations, after, place)
        return changed is not None
