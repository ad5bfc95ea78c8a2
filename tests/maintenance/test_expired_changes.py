"""A reader of changes that comes after one of its versions has expired is told, whatever of its rows is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakeward.errors import UnknownVersion
from support.past import Past

HISTORY = ("append", "append", "replace", "append", "append", "replace", "append")
ARMS = ("postgres", "iceberg")


@pytest.mark.parametrize("arm", ARMS)
def test_an_expired_version_is_named(past: Callable[..., Past], arm: str) -> None:
    subject = past(arm, *HISTORY)
    subject.maintain()
    for since, version in ((2, 7), (2, 3), (2, None)):
        with pytest.raises(UnknownVersion, match=f"version 2 of dataset {subject.name} has expired"):
            subject.dataset.changes(since, version)
    with pytest.raises(UnknownVersion, match=f"version 3 of dataset {subject.name} has expired"):
        subject.dataset.changes(0, 3)


@pytest.mark.parametrize("arm", ARMS)
def test_versions_between_may_have_expired(past: Callable[..., Past], arm: str) -> None:
    subject = past(arm, *HISTORY)
    subject.dataset.keep(2)
    before = subject.dataset.to_arrow(version=2).num_rows
    for _ in range(2):
        subject.maintain()
        subject.grow_old()
    found = subject.dataset.changes(2, 7).read_all()["__op"].to_pylist()
    assert (found.count("delete"), found.count("insert")) == (before, subject.dataset.row_count)
    assert len(found) == before + subject.dataset.row_count
    subject.dataset.let_go(2)


@pytest.mark.parametrize("arm", ARMS)
def test_a_late_reader_of_an_expired_version_is_told(
    past: Callable[..., Past], arm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeward.storage.changes.LATE_SECONDS", -1.0)
    subject = past(arm, *HISTORY)
    lost, kept = subject.dataset.changes(1, 2), subject.dataset.changes(6, 7)
    for _ in range(2):
        subject.maintain()
        subject.grow_old()
    assert kept.read_all().num_rows == 4
    with pytest.raises(UnknownVersion, match=f"version 1 of dataset {subject.name} has expired"):
        lost.read_all()
