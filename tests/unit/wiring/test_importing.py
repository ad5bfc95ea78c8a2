"""Files in and out through the Python API."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeward
from lakeward.errors import InvalidName, SettingsError, SourceFileError, UsageError


def test_import_and_export(workspace: lakeward.Workspace, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id;t\n1;NA\n2;x\n")
    told: list[tuple[str, int, int | None]] = []
    result = workspace.import_file(
        "a.b.c",
        tmp_path / "t.csv",
        lambda *what: told.append(what),
        primary_key=["id"],
        arm="iceberg",
        options={"delimiter": ";", "null_markers": ("NA",)},
    )
    assert (result.created, result.rows_read, result.rows_written, result.version) == (True, 2, 2, 1)
    assert told[-1] == ("importing a.b.c", 2, 2)
    dataset = workspace.dataset("a.b.c")
    assert dataset.arm == "iceberg" and dataset.schema.primary_key == ("id",)
    exported = dataset.export(tmp_path / "t.parquet", columns=["t"], where="id = 1")
    assert exported.rows == 1 and pq.read_table(tmp_path / "t.parquet").to_pylist() == [{"t": None}]
    dataset.write([{"id": 3, "t": "y"}])
    assert dataset.export(tmp_path / "old.csv", version=1).rows == 2
    with pytest.raises(UsageError, match="exists already"):
        dataset.export(tmp_path / "old.csv")
    assert dataset.export(tmp_path / "old.csv", overwrite=True).rows == 3


def test_a_tsv_file_has_tabs_beside_its_other_options(workspace: lakeward.Workspace, tmp_path: Path) -> None:
    file = tmp_path / "t.tsv"
    file.write_text("id\tt\n1\tNA\n")
    assert workspace.import_file("a.b.c", file, options={"null_markers": ("NA",)}).row_count == 1
    assert workspace.dataset("a.b.c").to_arrow().to_pylist() == [{"id": 1, "t": None}]


def test_parquet_has_no_dialect(workspace: lakeward.Workspace, tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": [1, 2]}), file)
    with pytest.raises(SettingsError, match="for csv and tsv only; files of format parquet have no opt"):
        workspace.import_file("a.b.c", file, options={"delimiter": ";"})
    with pytest.raises(SettingsError, match="unknown option 'delimeter'"):
        workspace.import_file("a.b.c", tmp_path / "t.parquet", format="csv", options={"delimeter": ";"})
    assert workspace.datasets() == []
    assert workspace.import_file("a.b.c", file, columns={"id": "int"}).row_count == 2


def test_a_file_that_changes_while_it_is_imported(workspace: lakeward.Workspace, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("id\n1\n")
    plan = workspace.plan_import("a.b.c", file)
    assert plan.rows == 1 and workspace.datasets() == []
    file.write_text("id\n1\n2\n")
    with pytest.raises(SourceFileError, match="changed since it was scanned") as caught:
        workspace.run_import(plan)
    assert caught.value.safe == "nothing was changed"
    assert workspace.datasets() == []


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_rows_that_came_before_are_told(workspace: lakeward.Workspace, tmp_path: Path, arm: str) -> None:
    one, two = tmp_path / "1.csv", tmp_path / "2.csv"
    one.write_text("id\n1\n2\n")
    two.write_text("id\n2\n3\n")
    for file in (one, two):
        assert workspace.import_file("a.b.c", file, arm=arm).warnings == ()
    [told] = workspace.import_file("a.b.c", two).warnings
    assert told.startswith("version 2 brought the same rows: each is there twice now") and "--idempotency-key" in told
    assert workspace.import_file("a.b.c", two, idempotency_key="k").warnings == ()
    workspace.import_file("a.b.c", two, mode="replace")
    assert workspace.import_file("a.b.c", two).warnings == ()
    with pytest.raises(InvalidName, match="is not a dataset's full name") as caught:
        workspace.import_file("b.c", two)
    assert caught.value.next_step == "write main.b.c; a name is catalog.schema.dataset"
