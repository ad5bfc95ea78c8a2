"""Types that are declared stand, and those of the other columns are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import ColumnMismatch, NameTaken, SourceFileError
from lakeward.wiring.sync_plan import SyncRequest

Write = Callable[[str, str], Path]


def test_of_one_column_alone(ws: lakeward.Workspace, write: Write, name: str) -> None:
    dataset = f"a.b.{name}"
    file = write("t.csv", "id,amount,day\n1,1.5,2024-02-29\n2,,\n")
    with pytest.raises(SourceFileError, match=r"line 2, column 'amount': '1\.5' is not a long"):
        ws.import_file(dataset, file, columns={"amount": "long"})
    assert ws.datasets() == [] or dataset not in [each.name for each in ws.datasets()]
    made = ws.import_file(dataset, file, columns={"amount": "decimal(38,6)"}, arm="iceberg")
    assert made.columns == {"id": "long", "amount": "decimal(38,6)", "day": "date"}
    assert [str(row["amount"]) for row in ws.dataset(dataset).to_arrow().to_pylist()] == ["1.500000", "None"]
    # Later on it has to be what the dataset has.
    assert ws.import_file(dataset, file, columns={"amount": "decimal(38,6)"}).row_count == 4
    with pytest.raises(NameTaken, match=r"'amount' is decimal\(38,6\) there, and double was declared"):
        ws.import_file(dataset, file, columns={"amount": "double"})
    with pytest.raises(ColumnMismatch, match="missing in the file: amonut") as caught:
        ws.import_file(f"{dataset}_2", file, columns={"amonut": "double"})
    assert caught.value.next_step is not None and "columns that the files have" in caught.value.next_step


def test_of_json_by_a_type_that_holds_any_value(ws: lakeward.Workspace, write: Write, name: str) -> None:
    dataset = f"a.b.{name}"
    file = write("t.ndjson", '{"id": 1, "v": 1}\n{"id": 2, "v": "x"}\n')
    made = ws.import_file(dataset, file, columns={"v": "json", "later": "date"}, on_error="quarantine")
    assert made.columns == {"id": "long", "v": "json", "later": "date"}
    assert ws.dataset(dataset).to_arrow().sort_by("id")["v"].to_pylist() == ["1", '"x"']


def test_of_a_table_of_files(ws: lakeward.Workspace, write: Write, name: str) -> None:
    write("in/1.csv", "id,code\n1,7\n")
    folder = write("in/2.csv", "code,id\nx7,2\n").parent
    ws.sources.add(name, "files", {"path": f"in={folder}/*.csv"})
    [synced] = ws.sources.sync(SyncRequest(name, columns={"id": "int"}))
    columns = ws.dataset(synced.written.dataset).schema.columns
    assert {column.name: str(column.type) for column in columns} == {"id": "int", "code": "string"}
