"""A table of documents for the tests of what Postgres keeps and computes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakeward.control.embedded.server import EmbeddedPostgres
from support.documents import Documents


@pytest.fixture(scope="session")
def documents(postgres: EmbeddedPostgres) -> Iterator[Documents]:
    """One table for all tests, because Hypothesis needs one that lasts; each test puts in what it needs."""
    with Documents.open(postgres.url) as opened:
        yield opened
