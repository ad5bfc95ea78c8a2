"""Compaction after writes, by policy: when it comes, that it stands back, and that no write ever fails for it."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.control.records import Window
from lakeward.storage.arms.iceberg.compaction import Compactor
from lakeward.storage.requests import Output
from lakeward.storage.table import table_ref
from lakeward.testing import AtStep, raise_at
from lakeward.types.conform import to_reader
from support.arms import iceberg_table
from support.compaction import CALM
from support.crashes import unclean
from support.ledger import intent_on
from support.position_deletes import data_files, delete_files

Compacting = Callable[..., lakeward.Workspace]

FEW = "small_files = 4\n"
_numbers = itertools.count(1)


def made(ws: lakeward.Workspace, name: str | None = None) -> lakeward.Dataset:
    full = name or f"main.automatic.d{next(_numbers)}"
    return ws.create_dataset(full, {"id": "long", "note": "string"}, ["id"], arm="iceberg")


def append(dataset: lakeward.Dataset, number: int) -> None:
    dataset.write([{"id": number, "note": f"row {number}"}])


def verbs(dataset: lakeward.Dataset) -> list[str]:
    return [each.verb for each in reversed(dataset.history(1_000)) if each.status == "committed"]


def files(ws: lakeward.Workspace, dataset: lakeward.Dataset) -> dict[str, int]:
    return data_files(iceberg_table(ws, table_ref(dataset.record)))


def test_small_files_are_merged_once_there_are_enough(compacting: Compacting) -> None:
    ws = compacting("automatic", None, FEW)
    dataset = made(ws)
    for number in range(8):
        append(dataset, number)
    assert verbs(dataset) == ["append"] * 8 + ["compact"], "of four files no eight are of one tier"
    assert dataset.history()[0].writer == "storage.compaction" and len(files(ws, dataset)) == 1


def test_hundreds_of_appends_then_asked(compacting: Compacting) -> None:
    """Many small writes do not make a table slow, and no row is rewritten again and again for it."""
    ws = compacting("automatic")
    dataset = made(ws)
    for number in range(300):
        append(dataset, number)
    history = dataset.history(5_000)
    done = [each for each in history if each.verb == "compact"]
    assert 7 <= len(done) <= 10 and all(each.writer == "storage.compaction" for each in done)
    assert sum(each.rows_in or 0 for each in done) <= 3 * 300, "once per tier of eight"
    assert len(files(ws, dataset)) <= 64
    digest = dataset.digest()
    ws.maintain(dataset.name, older_than=CALM)
    assert len(files(ws, dataset)) <= 10 and dataset.digest() == digest and dataset.verify().equal
    assert sorted(dataset.to_arrow(identity=True)["__row_index"].to_pylist()) == list(range(300))
    table = iceberg_table(ws, table_ref(dataset.record))
    assert len(table.current_snapshot().manifests(table.io)) <= 2
    assert unclean(ws, [dataset.name]) == []


def test_deleted_rows_are_taken_out_after_eight_delete_files(compacting: Compacting) -> None:
    ws = compacting("automatic")
    dataset = made(ws)
    dataset.write([{"id": number, "note": "old"} for number in range(200)])
    most = 0
    for round_ in range(40):
        dataset.write([{"id": number, "note": f"{round_}"} for number in (round_, 100 + round_)], mode="upsert")
        table = iceberg_table(ws, table_ref(dataset.record))
        most = max([most, *(len(task.delete_files) for task in table.scan().plan_files())])
    assert most <= 10 and "compact" in verbs(dataset)
    assert len(delete_files(iceberg_table(ws, table_ref(dataset.record)))) <= 100
    assert dataset.row_count == 200 and dataset.verify().equal and unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize("mode", ["manual", "off"])
def test_not_unless_it_is_wanted(compacting: Compacting, mode: str) -> None:
    ws = compacting(mode)
    dataset = made(ws)
    for number in range(40):
        append(dataset, number)
    assert set(verbs(dataset)) == {"append"}
    assert len(ws.maintain(dataset.name, older_than=CALM).compacted) == (mode == "manual")


def test_a_write_stands_though_the_compaction_fails(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ws = compacting("automatic", None, FEW)
    dataset = made(ws)
    tried: list[int] = []

    def broken(*of: object) -> None:
        tried.append(dataset.row_count)
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(Compactor, "rewrite", broken)
    for number in range(33):
        append(dataset, number)
    monkeypatch.undo()
    assert tried == [8, 16, 32], "after twice as many files each time"
    assert dataset.row_count == 33 and set(verbs(dataset)) == {"append"}
    assert f"dataset {dataset.name} was written, but not compacted: ZeroDivisionError" in caplog.text
    assert unclean(ws, [dataset.name]) == []
    assert len(ws.maintain(dataset.name, older_than=CALM).compacted) == 1


def test_it_gives_way_to_who_waits(compacting: Compacting, caplog: pytest.LogCaptureFixture) -> None:
    ws = compacting("automatic")
    dataset = made(ws)
    for number in range(31):
        append(dataset, number)
    caplog.set_level(logging.INFO, "lakeward.maintenance")
    with ws.database.transaction() as connection:
        connection.exec_driver_sql(
            "INSERT INTO lakeward.slot_waiters (dataset_id, alive_until) "
            "VALUES (%s, clock_timestamp() + interval '1 second')",
            (dataset.record.id,),
        )
    other = threading.Thread(target=append, args=(dataset, 31))
    other.start()
    other.join()
    # The waiter left when it had not looked for a second; then the write came, which compacts, as nobody waits.
    assert verbs(dataset)[-1] == "compact"


def test_it_does_not_wait_for_a_writer(compacting: Compacting, caplog: pytest.LogCaptureFixture) -> None:
    held: list[object] = []
    quiet = compacting("off")
    dataset = made(quiet)
    record = dataset.record

    def take() -> None:
        opened = quiet.ledger.try_open(intent_on(quiet.tree.by_id(record.id)))
        assert opened is not None
        held.append(opened)

    ws = compacting("automatic")
    for number in range(31):
        append(ws.dataset(dataset.name), number)
    caplog.set_level(logging.INFO, "lakeward.maintenance")
    # Another writer has the slot in the moment in which the compaction asks for it.
    meddled = compacting("automatic", AtStep("intent", take, 2))
    append(meddled.dataset(dataset.name), 31)
    assert f"dataset {dataset.name} is not compacted now" in caplog.text
    (opened,) = held
    assert quiet.ledger.abort(opened.id, opened.fence, "the test is over")  # type: ignore[attr-defined]
    assert verbs(dataset) == ["append"] * 32
    assert unclean(ws, [dataset.name]) == []


def test_a_build_is_not_stale_for_it(compacting: Compacting, tmp_path: Path) -> None:
    ws = compacting("manual")
    name = f"stale{next(_numbers)}"
    source = made(ws, f"main.{name}.source")
    for number in range(4):
        append(source, number)
    project = tmp_path / "project"
    (project / "pipelines").mkdir(parents=True)
    (project / "lakeward.toml").write_text(f"[project]\nname = '{name}'\n", encoding="utf-8")
    (project / "pipelines" / "p.yml").write_text(
        f"pipeline: {name}\nnodes:\n  s: {{source: main.{name}.source}}\noutputs:\n"
        f"  - {{dataset: main.{name}.target, from: s, arm: iceberg, strategy: replace, primary_key: [id]}}\n",
        encoding="utf-8",
    )
    ws.apply(project)

    def up_to_date() -> bool:
        (result,) = ws.build(name)
        return result.up_to_date

    assert not up_to_date() and up_to_date()
    assert len(ws.maintain(source.name, older_than=CALM).compacted) == 1
    assert up_to_date(), "the source was compacted"
    append(source, 4)
    assert not up_to_date() and up_to_date()
    target = ws.dataset(f"main.{name}.target")
    for number in range(2):
        target.write([{"id": 100 + number, "note": "by hand"}])
    assert len(ws.maintain(target.name, older_than=CALM).compacted) == 1
    assert not up_to_date(), "written by hand, and compacted after that"
    assert len(ws.maintain(target.name, older_than=CALM).compacted) == 0


def test_a_build_that_is_open_reads_what_it_began_with(compacting: Compacting) -> None:
    """The windows of an open transaction name a version that is then compacted: it stays, and so does what it read."""
    ws = compacting("manual")
    source, target = made(ws), made(ws)
    for number in range(6):
        append(source, number)
    head = source.record.head_version

    def read() -> object:
        assert len(ws.maintain(source.name, older_than=CALM).compacted) == 1
        found = source.to_arrow(version=head)
        return to_reader(found, target.record.schema, dataset=target.name)

    output = Output(target.record, "append", read, windows={source.record.id: Window(0, head)})  # type: ignore[arg-type]
    ws.storage.build([output], writer="test")
    assert target.row_count == 6 and source.record.head_version == head + 1


def test_two_at_once_do_it_once(compacting: Compacting) -> None:
    ws = compacting("manual")
    dataset = made(ws)
    for number in range(10):
        append(dataset, number)
    found: list[int] = []
    start = threading.Barrier(3)

    def ask() -> None:
        start.wait()
        found.append(len(ws.maintain(dataset.name, older_than=CALM).compacted))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 0, 1] and verbs(dataset) == ["append"] * 10 + ["compact"]
    assert unclean(ws, [dataset.name]) == []


def test_a_writer_in_between_waits_and_loses_nothing(compacting: Compacting) -> None:
    ws = compacting("manual")
    dataset = made(ws)
    for number in range(6):
        append(dataset, number)
    writers: list[threading.Thread] = []

    def write() -> None:
        writers.append(threading.Thread(target=append, args=(ws.dataset(dataset.name), 6)))
        writers[-1].start()

    slow = compacting("manual", AtStep("prepare:files", write))
    assert len(slow.maintain(dataset.name, older_than=CALM).compacted) == 1
    writers[0].join()
    assert verbs(dataset) == ["append"] * 6 + ["compact", "append"]
    assert dataset.row_count == 7 and dataset.verify().equal and unclean(ws, [dataset.name]) == []


def test_what_an_aborted_one_left_goes(compacting: Compacting) -> None:
    dataset = made(compacting("manual"))
    for number in range(6):
        append(dataset, number)
    failing = compacting("manual", raise_at("prepare:committed", lakeward.errors.StorageError("no")))
    assert "no" in failing.maintain(dataset.name, older_than=CALM).failures[0].error
    root = Path(dataset.locate()["iceberg"]["location"].removeprefix("file://"))
    off = compacting("off")
    left = {path for path in root.rglob("*.parquet") if path.name.startswith("00000007-")}
    assert left and unclean(off, [dataset.name]) == []
    append(off.dataset(dataset.name), 6)
    for path in root.rglob("*"):
        os.utime(path, (time.time() - 86_400, time.time() - 86_400))
    report = off.maintain(dataset.name, older_than=CALM)
    assert left <= {Path(each.what) for each in report.removed} and not any(path.exists() for path in left)
    assert dataset.to_arrow().num_rows == 7 and dataset.verify().equal
