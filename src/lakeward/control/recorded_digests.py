"""The digest that was first found for a version, kept with it: a later look at the version must find it again."""

from __future__ import annotations

from lakeward.control.db import Database, Queries
from lakeward.types.digest import Digest

QUERIES = Queries.beside(__file__)


class RecordedDigests:
    """Digests of committed versions, as they were when they were first computed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, dataset_id: int, version: int) -> Digest | None:
        """Return the recorded digest of a version, or None if nobody has computed it yet."""
        rows = self._database.fetch(QUERIES["recorded"], {"dataset_id": dataset_id, "version": version})
        if not rows:
            return None
        return Digest(int(rows[0]["row_count"]), int(rows[0]["digest_high"]), int(rows[0]["digest_low"]))

    def record(self, dataset_id: int, version: int, digest: Digest) -> None:
        """Keep a version's digest, unless one is kept already."""
        values = {"dataset_id": dataset_id, "version": version, "high": digest.high, "low": digest.low}
        # One transaction, datasets first: the order in which everybody locks these tables.
        with self._database.transaction() as connection:
            connection.execute(QUERIES["record_head"], values)
            connection.execute(QUERIES["record"], values)
