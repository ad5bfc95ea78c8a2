"""The strategy `replace`."""

from __future__ import annotations

from lakeward.pipelines.strategies.replace import Replace


def test_every_build_replaces() -> None:
    assert (Replace().verb(first=True), Replace().verb(first=False), Replace.needs_key) == ("replace", "replace", False)
