"""A folder that files keep arriving in: each is read once, whatever is killed or changed, and what was read is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.control.sources import SourceTables
from lakeward.errors import ColumnMismatch, DuplicateKey, EmptyReplace, SourceFileError, UsageError
from lakeward.sources.connectors import files_read
from lakeward.sources.source_file import LocalFile
from lakeward.wiring.sync_plan import SyncRequest
from lakeward.wiring.syncing import TableSynced
from support.crashes import Driver, unclean

Write = Callable[[str, str], Path]
Sync = Callable[..., TableSynced]
POINTS = ("compute", "prepare", "audit", "decide", "decide:committed")


@pytest.fixture
def sync(ws: lakeward.Workspace, name: str, tmp_path: Path) -> Iterator[Sync]:
    """Syncs `in/*.csv` into the dataset `main.NAME.in`."""
    (tmp_path / "in").mkdir()
    ws.sources.add(name, "files", {"path": f"in={tmp_path}/in/*.csv"})

    def run(mode: str = "append", **how: object) -> TableSynced:
        [synced] = ws.sources.sync(SyncRequest(name, mode=mode, **how))  # type: ignore[arg-type]
        return synced

    yield run
    ws.sources.remove(name)


def rows(ws: lakeward.Workspace, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in ws.dataset(f"main.{name}.in").to_arrow().to_pylist())


def names(synced: TableSynced) -> list[str]:
    return [os.path.basename(file) for file in synced.files]


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_append_reads_each_file_once(ws: lakeward.Workspace, write: Write, sync: Sync, name: str, arm: str) -> None:
    write("in/2.csv", "id,v\n2,b\n")
    first = write("in/1.csv", "id,v\n1,a\n1,a\n")
    made = sync(arm=arm)
    assert (names(made), made.rows_read, made.written.version) == (["1.csv", "2.csv"], 3, 1)
    assert sync().rows_read == 0 and ws.dataset(f"main.{name}.in").version == 1
    write("in/3.csv", "v,id\nc,3\n")
    (first.parent / "link.csv").symlink_to(first)
    again = sync()
    assert (names(again), again.rows_read) == (["3.csv"], 1)
    # One that is gone is fine, and so is one that was only touched, or put there again with its content.
    first.unlink()
    os.utime(write("in/2.csv", "id,v\n2,b\n"), (1, 1))
    assert sync().rows_read == 0
    assert rows(ws, name) == [(1, "a"), (1, "a"), (2, "b"), (3, "c")]
    # One that was changed would bring its old rows a second time.
    write("in/3.csv", "id,v\n3,c\n4,d\n")
    with pytest.raises(SourceFileError, match=r"in/3\.csv: was changed after its rows were read") as caught:
        sync()
    assert caught.value.safe == "nothing was written" and ws.dataset(f"main.{name}.in").version == again.written.version
    # All of what is there now; the next append goes on from it.
    assert sync("full").rows_read == 3
    assert rows(ws, name) == [(2, "b"), (3, "c"), (4, "d")]
    write("in/5.csv", "id,v\n5,e\n")
    assert names(sync()) == ["5.csv"]


def test_with_a_key_a_changed_file_is_read_again(ws: lakeward.Workspace, write: Write, sync: Sync, name: str) -> None:
    write("in/1.csv", "id,v\n1,a\n2,b\n")
    assert sync("incremental", key=["id"]).rows_read == 2
    write("in/1.csv", "id,v\n1,a\n2,B\n")
    write("in/2.csv", "id,v\n3,c\n")
    again = sync("incremental")
    assert (again.rows_read, again.written.rows_updated, again.written.rows_unchanged) == (3, 1, 1)
    assert rows(ws, name) == [(1, "a"), (2, "B"), (3, "c")]
    # Rows that were all there already: the file is known afterwards.
    write("in/3.csv", "id,v\n3,c\n")
    assert sync("incremental").written.rows_unchanged == 1 and sync("incremental").rows_read == 0
    write("in/4.csv", "id,v\n4,x\n")
    write("in/5.csv", "id,v\n4,y\n")
    with pytest.raises(DuplicateKey):
        sync("incremental")
    (write("in/5.csv", "").parent / "5.csv").unlink()
    assert names(sync("append")) == ["4.csv"]


def test_types_are_those_of_all_files_and_then_the_datasets(
    ws: lakeward.Workspace, write: Write, sync: Sync, name: str
) -> None:
    with pytest.raises(UsageError, match="no file is there yet"):
        sync()
    write("in/1.csv", "v\n" + "7.25\n" * 10_000)
    write("in/2.csv", "v\n7.2.5\n")
    assert [action for plan in ws.sources.plan_sync(SyncRequest(name)) for action in plan.actions()]
    assert sync().rows_read == 10_001
    assert str(ws.dataset(f"main.{name}.in").schema.columns[0].type) == "string"
    write("in/3.csv", "v,w\n1,2\n")
    with pytest.raises(ColumnMismatch, match=r"3\.csv: .* only in the file: w"):
        sync()
    write("in/3.csv", "v\n\xe9\n").write_bytes(b"v\n\xe9\n")
    with pytest.raises(SourceFileError, match=r"3\.csv: line 2 is not utf-8"):
        sync()
    assert ws.dataset(f"main.{name}.in").version == 1


def test_declared_types(ws: lakeward.Workspace, write: Write, sync: Sync, name: str) -> None:
    file = write("in/1.csv", "id,v\n1,1\n2,x\n")
    with pytest.raises(SourceFileError, match=r"1\.csv: line 3, column 'v': 'x' is not a int"):
        sync(columns={"v": "int", "id": "long"})
    file.write_text("id,v\n1,1\n")
    assert sync(columns={"v": "int", "id": "long"}).rows_read == 1
    assert rows(ws, name) == [(1, 1)]


def test_an_empty_folder_empties_nothing(ws: lakeward.Workspace, write: Write, sync: Sync, name: str) -> None:
    file = write("in/1.csv", "v\n1\n")
    sync("full")
    file.unlink()
    assert sync().rows_read == 0
    with pytest.raises(EmptyReplace):
        sync("full")
    assert sync("full", allow_empty=True).written.row_count == 0
    # What was read of it is forgotten with its rows.
    write("in/1.csv", "v\n1\n")
    assert sync().rows_read == 1


def test_a_file_that_is_still_written_is_left_or_refused(
    ws: lakeward.Workspace, write: Write, sync: Sync, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("in/1.csv", "v\n1\n")
    sync()
    growing = write("in/2.csv", "v\n2\n")
    write("in/3.csv", "v\n3\n")
    hashed = LocalFile.hash

    def grows(self: LocalFile, state: object) -> str:
        if self.name == growing.name:
            with growing.open("a") as file:
                file.write("2\n")
        return hashed(self, state)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalFile, "hash", grows)
    left = sync()
    assert names(left) == ["3.csv"] and left.left == (f"{growing} is being written",)
    with pytest.raises(SourceFileError, match=r"2\.csv: is being written"):
        sync("full")
    monkeypatch.setattr(LocalFile, "hash", hashed)
    steady = files_read.steady

    def written(file: LocalFile, known: object) -> object:
        growing.open("a").write("x,y\n")
        return steady(file, known)  # type: ignore[arg-type]

    monkeypatch.setattr(files_read, "steady", written)
    with pytest.raises(SourceFileError, match=r"2\.csv: has changed since it was scanned"):
        sync()
    assert ws.dataset(f"main.{name}.in").version == 2


@pytest.fixture(scope="module")
def driver(ws: lakeward.Workspace, files_url: str, files_warehouse: Path) -> Iterator[Driver]:
    """Forks the syncs that are to die."""
    with Driver(files_url, files_warehouse) as running:
        yield running


@pytest.mark.parametrize(("arm", "mode"), [("postgres", "append"), ("iceberg", "incremental")])
def test_i03_a_killed_sync_skips_no_file_and_repeats_none(
    ws: lakeward.Workspace, driver: Driver, write: Write, sync: Sync, name: str, arm: str, mode: str
) -> None:
    write("in/0.csv", "id,v\n0,n\n")
    sync(mode, arm=arm, key=["id"] if mode == "incremental" else [])
    for number, point in enumerate(POINTS, start=1):
        write(f"in/{number}.csv", f"id,v\n{number},n\n")
        case = {"source": name, "tables": ["in"], "mode": mode}
        assert driver.run(sync=case, fault=["crash", point, 1]).killed(), point
        stands = point == "decide:committed"
        assert len(rows(ws, name)) == number + stands
        # The next sync tidies up first.
        assert names(sync(mode)) == ([] if stands else [f"{number}.csv"])
        assert rows(ws, name) == [(each, "n") for each in range(number + 1)]
    assert unclean(ws, [f"main.{name}.in"]) == []
    assert len(SourceTables(ws.database).files(ws.dataset(f"main.{name}.in").record.id)) == len(POINTS) + 1


def test_tables_of_a_source(ws: lakeward.Workspace, write: Write, name: str, tmp_path: Path) -> None:
    write("shop/orders_1.csv", "id\n1\n")
    write("shop/orders_2.csv", "id\n2\n")
    write("old/orders_0.csv", "id\n0\n")
    write("shop/customers.csv", "id;n\n1;NA\n")
    paths = [f"{tmp_path}/shop/orders_*.csv", f"orders={tmp_path}/old/*.csv", f"orders={tmp_path}/shop/orders_1.csv"]
    with pytest.raises(UsageError, match=r"the folder .*/gone does not exist"):
        ws.sources.add(name, "files", {"path": [f"{tmp_path}/gone/*.csv"]})
    with pytest.raises(UsageError, match="unknown option 'delimeter'"):
        ws.sources.add(name, "files", {"path": paths, "delimeter": ";"})
    ws.sources.add(name, "files", {"path": paths})
    assert [(table.full_name, about) for table, about in ws.sources.tables(name)] == [("orders", "3 files")]
    [synced] = ws.sources.sync(SyncRequest(name))
    assert synced.written.dataset == f"main.{name}.orders" and synced.rows_read == 3
    other = {"path": [f"{tmp_path}/shop/customers.csv"], "delimiter": ";", "null_markers": ["NA"]}
    ws.sources.add(f"{name}-c", "files", other)
    ws.sources.sync(SyncRequest(f"{name}-c", into=f"main.{name}"))
    assert ws.dataset(f"main.{name}.customers").to_arrow().to_pylist() == [{"id": 1, "n": None}]


def test_a_hundred_thousand_files_that_were_read(ws: lakeward.Workspace, write: Write, sync: Sync, name: str) -> None:
    write("in/0.csv", "v\n0\n")
    sync()
    record = ws.dataset(f"main.{name}.in").record
    with ws.database.transaction() as connection:
        connection.exec_driver_sql(
            "INSERT INTO lakeward.source_files (dataset_id, path, size, state, hash, version) "
            "SELECT %s, '/gone/' || n || '.csv', 1, '1', 'sha256:1', 1 FROM generate_series(1, 100000) n",
            (record.id,),
        )
    write("in/1.csv", "v\n1\n")
    assert names(sync()) == ["1.csv"]
    assert len(SourceTables(ws.database).files(record.id)) == 100_002


def test_a_change_that_has_the_time_of_the_one_before(
    ws: lakeward.Workspace, write: Write, sync: Sync, name: str
) -> None:
    file = write("in/1.csv", "v\n1\n")
    stat = file.stat()
    sync()
    assert sync().rows_read == 0
    write("in/1.csv", "v\n2\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(SourceFileError, match=r"1\.csv: was changed"):
        sync()


@pytest.mark.parametrize("how", ["written", "replaced", "swapped"])
def test_a_change_of_an_old_file_that_has_its_size_and_its_time_is_noticed(
    ws: lakeward.Workspace, write: Write, sync: Sync, name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What changed just now is hashed the next time in any case.
    monkeypatch.setattr(LocalFile, "settled_seconds", 0.0)
    file, other = write("in/1.csv", "v\n1\n"), write("in/2.csv", "v\n2\n")
    for each in (file, other):
        os.utime(each, (1, 1))
    sync()
    # Rights and links alone are no change.
    file.chmod(0o600)
    os.link(other, file.parent / "other.link")
    assert sync().rows_read == 0
    if how == "written":
        file.write_text("v\n3\n", encoding="utf-8")
    elif how == "replaced":
        write("in/new", "v\n3\n").replace(file)
    else:
        os.rename(file, file.with_suffix(".kept"))
        os.rename(other, file)
    os.utime(file, (1, 1))
    with pytest.raises(SourceFileError, match=r"1\.csv: was changed"):
        sync()
