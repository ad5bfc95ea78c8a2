"""Keys that requests were given, so that a request which is repeated changes nothing: each with what came of the first.

A key is recorded by the decide of the request, in one Postgres transaction with its rows, and belongs to one dataset.
It is looked for while that dataset is held, so that of two requests with one key at once only one writes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakeward.control.db import Database, Pipeline, Queries
from lakeward.control.records import OpenTransaction, Remembered
from lakeward.errors import UsageError

QUERIES = Queries.beside(__file__)

MOST_CHARACTERS = 200
"""How long a key may be."""


@dataclass(frozen=True)
class FirstRequest:
    """The request that a key was first given with.

    Args:
        dataset_id: what it wrote to.
        build_id: of the build that it was, alone or with others.
        remembered: what it was, and what came of it.
    """

    dataset_id: int
    build_id: uuid.UUID
    remembered: Remembered


class IdempotencyKeys:
    """The table `lakeward.idempotency_keys` of one workspace; `Ledger.decide` writes it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, asked: Sequence[tuple[int, str]]) -> list[FirstRequest]:
        """Return the requests that had these keys, by dataset id and key; nothing for keys that are new."""
        values = {"dataset_ids": [id_ for id_, _ in asked], "keys": [key for _, key in asked]}
        return [
            FirstRequest(
                row["dataset_id"],
                row["build_id"],
                Remembered(
                    row["key"],
                    row["verb"],
                    row["writer"],
                    (row["rows_count"], int(row["rows_high"]), int(row["rows_low"])),
                    row["result"],
                ),
            )
            for row in self._database.fetch(QUERIES["remembered"], values)
        ]

    def forget(self, dataset_ids: Sequence[int], *, dry_run: bool = False) -> dict[int, int]:
        """Forget keys whose time is over, and return how many, by dataset id; in a dry run, how many there are."""
        query = QUERIES["outdated" if dry_run else "forget"]
        rows = self._database.fetch(query, {"dataset_ids": list(dataset_ids)})
        return {row["dataset_id"]: row["keys"] for row in rows}


def check_key(key: str, dataset: str) -> None:
    """Raise UsageError if a text can't be a key: it has 1 to 200 characters, of any kind that Postgres can store."""
    wrong = None
    if not 1 <= len(key) <= MOST_CHARACTERS:
        wrong = f"has {len(key):,} characters; 1 to {MOST_CHARACTERS} are possible"
    elif "\0" in key or any("\ud800" <= each <= "\udfff" for each in key):
        wrong = "has a NUL or half of a surrogate pair, which can't be stored"
    if wrong is not None:
        raise UsageError(f"the idempotency key for dataset {dataset} {wrong}", safe="nothing was written")


def remember(send: Pipeline, transaction: OpenTransaction, remembered: Remembered, days: float) -> None:
    """Send what records a key, in the transaction that decides its request."""
    key: Mapping[str, Any] = {"dataset_id": transaction.dataset_id, "key": remembered.key}
    send(QUERIES, "outdate", key)
    count, high, low = remembered.rows
    send(
        QUERIES,
        "remember",
        {
            **key,
            "build_id": transaction.build_id,
            "verb": remembered.verb,
            "writer": remembered.writer,
            "rows_count": count,
            "rows_high": high,
            "rows_low": low,
            "result": json.dumps(remembered.result),
            "days": days,
        },
    )
