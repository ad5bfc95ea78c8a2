"""Records that a sync of files can't take: they end it, or go to a dataset of their own, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeward
from lakeward.errors import SourceFileError, UsageError
from lakeward.wiring.sync_plan import SyncRequest
from lakeward.wiring.syncing import TableSynced

Write = Callable[[str, str], Path]


@pytest.fixture
def sync(ws: lakeward.Workspace, name: str, tmp_path: Path) -> Iterator[Callable[..., TableSynced]]:
    """Syncs the files of a folder into the dataset `main.NAME.in`."""
    (tmp_path / "in").mkdir()
    ws.sources.add(name, "files", {"path": f"in={tmp_path}/in/*"})

    def run(mode: str = "append", on_error: str = "quarantine", **how: object) -> TableSynced:
        [synced] = ws.sources.sync(SyncRequest(name, mode=mode, on_error=on_error, **how))  # type: ignore[arg-type]
        return synced

    yield run
    ws.sources.remove(name)


def told(ws: lakeward.Workspace, dataset: str) -> list[tuple[object, ...]]:
    rows = ws.dataset(f"{dataset}__rejected").to_arrow().to_pylist()
    return sorted((Path(row["file"]).name, row["line"], row["column"], row["reason"]) for row in rows)


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_each_rejected_record_comes_once(
    ws: lakeward.Workspace, write: Write, name: str, sync: Callable[..., TableSynced], arm: str
) -> None:
    write("in/1.csv", "id,v\n1,a\n2\n")
    with pytest.raises(SourceFileError, match="line 3"):
        sync(on_error="refuse", arm=arm)
    made = sync(arm=arm)
    dataset, rejected = ws.dataset(f"main.{name}.in"), f"main.{name}.in__rejected"
    assert (made.rows_read, made.rows_rejected, made.rejected_to) == (1, 1, rejected)
    assert ws.dataset(rejected).history()[0].build_id == dataset.history()[0].build_id
    write("in/2.csv", "id,v\nx,b\n3,c\n")
    later = sync()
    assert (later.rows_read, later.rows_rejected, dataset.record.row_count) == (1, 1, 2)
    assert told(ws, f"main.{name}.in") == [
        ("1.csv", 3, None, "has 1 field; 2 fields are expected"),
        ("2.csv", 2, "id", "'x' is not a long"),
    ]
    nothing = sync()
    assert (nothing.rows_read, nothing.rows_rejected, nothing.rejected_to) == (0, 0, None)
    # A dataset of rejected records that is older than that of the rows is written first.
    write("in/3.csv", "id,v\n4\n5,e\n")
    assert sync(run="r").rows_rejected == 1 and sync(run="r").written.repeated


def test_too_many_end_the_sync_and_a_limit_needs_a_reason(
    ws: lakeward.Workspace, write: Write, name: str, sync: Callable[..., TableSynced]
) -> None:
    write("in/1.csv", "id,v\n1,a\n2\n3,c,d\n")
    with pytest.raises(SourceFileError, match="2 can't be taken, and 1 may be rejected"):
        sync(max_rejected=1)
    assert not [each for each in ws.datasets() if f".{name}." in each.name]
    with pytest.raises(UsageError, match="mirror deletes the rows whose keys") as caught:
        sync("full", key=["id"])
    assert caught.value.next_step is not None and "--mode incremental" in caught.value.next_step
    with pytest.raises(UsageError, match="none are rejected"):
        sync(on_error="refuse", max_rejected=1)


def test_text_by_choice_of_json(
    ws: lakeward.Workspace, write: Write, name: str, sync: Callable[..., TableSynced]
) -> None:
    write("in/1.ndjson", '{"id": 1, "v": 1.50}\n{"id": 2, "v": {"b": 1, "a": true}}\n')
    with pytest.raises(SourceFileError, match="column 'v'"):
        sync(on_error="refuse")
    sync(on_error="refuse", text=["v"], columns={"id": "int"})
    dataset = ws.dataset(f"main.{name}.in")
    assert {column.name: str(column.type) for column in dataset.schema.columns} == {"id": "int", "v": "string"}
    write("in/2.ndjson", '{"id": 3, "v": "1.50"}\n{"id": 4, "v": false}\n')
    sync(on_error="refuse", text=["v"])
    assert dataset.to_arrow().sort_by("id")["v"].to_pylist() == ["1.5", '{"a": true, "b": 1}', "1.50", "false"]


def test_a_record_without_its_key_is_rejected_with_file_and_line(
    ws: lakeward.Workspace, write: Write, name: str, tmp_path: Path
) -> None:
    reason = "is null, and it is part of the primary key"
    book = openpyxl.Workbook()
    for cells in (["id", "v"], [1, "a"], [None, "b"]):
        book.active.append(cells)
    book.save(tmp_path / "k.xlsx")
    pq.write_table(pa.table({"id": pa.array([1, None], pa.int64()), "v": ["a", "b"]}), tmp_path / "k.parquet")
    files = {
        write("k.csv", "id,v\n1,a\n,b\n"): 3,
        write("k.ndjson", '{"id": 1, "v": "a"}\n{"v": "b"}\n'): 2,
        tmp_path / "k.xlsx": 3,
        tmp_path / "k.parquet": 2,
    }
    for number, (file, line) in enumerate(files.items()):
        dataset = f"a.b.{name}_{number}"
        result = ws.import_file(dataset, file, primary_key=["id"], mode="upsert", on_error="quarantine")
        assert (result.rows_read, result.rows_written, result.rows_rejected) == (2, 1, 1)
        [(where, at, column, why)] = told(ws, dataset)
        assert (where, at, column) == (file.name, line, "id") and str(why).endswith(reason)
    # It counts before the dataset is made.
    with pytest.raises(SourceFileError, match="1 can't be taken, and 0 may be rejected"):
        ws.import_file(f"a.b.{name}", tmp_path / "k.csv", primary_key=["id"], on_error="quarantine", max_rejected=0)
    assert f"a.b.{name}" not in [each.name for each in ws.datasets()]
