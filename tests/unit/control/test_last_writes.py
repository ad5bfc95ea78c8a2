"""What the newest rows of datasets were made of, as the ledger knows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lakeward.control.db import Database
from lakeward.control.last_writes import LastWrite, LastWrites
from lakeward.control.ledger import Ledger
from lakeward.control.records import Intent, OpenTransaction, Window
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.types.schema import Schema
from support.ledger import intent_on, one_row, opened

Write = Callable[[DatasetRecord], OpenTransaction]


@pytest.fixture
def last(database: Database) -> Callable[..., dict[int, LastWrite]]:
    """Asks for the last writes of datasets."""
    return lambda *datasets: LastWrites(database).of([dataset.id for dataset in datasets])


@pytest.fixture
def sources(tree: Tree) -> list[DatasetRecord]:
    """Two further datasets, which are read."""
    return [tree.create_dataset(f"main.raw.{name}", Schema.declare({"id": "long"})) for name in ("a", "b")]


def built(dataset: DatasetRecord, fingerprint: str, read: dict[int, int]) -> Intent:
    """Return the wish to build a dataset from sources up to the given versions."""
    windows = {source: Window(0, version) for source, version in read.items()}
    return replace(intent_on(dataset, pipeline="p"), windows=windows, fingerprint=fingerprint)


def commit(ledger: Ledger, intent: Intent, **decision: object) -> OpenTransaction:
    transaction = ledger.try_open(intent)
    assert transaction is not None
    ledger.decide([replace(one_row(transaction), **decision)])  # type: ignore[arg-type]
    return transaction


def test_what_was_never_committed_has_none(
    ledger: Ledger, dataset: DatasetRecord, last: Callable[..., dict[int, LastWrite]]
) -> None:
    assert last() == {} and last(dataset) == {}
    running = opened(ledger, dataset)
    assert last(dataset) == {}
    ledger.abort(running.id, running.fence, "no")
    assert last(dataset) == {}


def test_a_build_is_known_by_its_fingerprint_and_by_exactly_what_it_read(
    ledger: Ledger, dataset: DatasetRecord, sources: list[DatasetRecord], last: Callable[..., dict[int, LastWrite]]
) -> None:
    one, two = (each.id for each in sources)
    commit(ledger, built(dataset, "f", {one: 3, two: 5}))
    assert last(dataset) == {dataset.id: LastWrite(1, "f", {one: 3, two: 5}, unpublished=False)}
    commit(ledger, built(dataset, "g", {two: 6}))
    assert last(dataset, *sources) == {dataset.id: LastWrite(2, "g", {two: 6}, unpublished=False)}


def test_i03_an_open_or_aborted_build_has_not_read_anything(
    ledger: Ledger, dataset: DatasetRecord, sources: list[DatasetRecord], last: Callable[..., dict[int, LastWrite]]
) -> None:
    one = sources[0].id
    commit(ledger, built(dataset, "f", {one: 3}))
    running = ledger.try_open(built(dataset, "g", {one: 4}))
    assert running is not None
    assert last(dataset)[dataset.id] == LastWrite(1, "f", {one: 3}, unpublished=False)
    ledger.abort(running.id, running.fence, "no")
    assert last(dataset)[dataset.id] == LastWrite(1, "f", {one: 3}, unpublished=False)


def test_a_copy_is_no_write_and_a_write_by_hand_is_one_of_no_pipeline(
    ledger: Ledger,
    dataset: DatasetRecord,
    sources: list[DatasetRecord],
    write: Write,
    last: Callable[..., dict[int, LastWrite]],
) -> None:
    one = sources[0].id
    commit(ledger, built(dataset, "f", {one: 3}))
    commit(ledger, replace(intent_on(dataset), kind="copy", verb="copy", arm="iceberg"))
    assert last(dataset)[dataset.id] == LastWrite(1, "f", {one: 3}, unpublished=False)
    write(dataset)
    assert last(dataset)[dataset.id] == LastWrite(3, None, {}, unpublished=False)


def test_it_says_what_is_yet_to_be_published(
    ledger: Ledger, dataset: DatasetRecord, last: Callable[..., dict[int, LastWrite]]
) -> None:
    transaction = commit(ledger, intent_on(dataset), publishes=True)
    assert last(dataset)[dataset.id].unpublished
    ledger.mark_published(transaction.id)
    assert not last(dataset)[dataset.id].unpublished
