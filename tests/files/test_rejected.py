"""Records that can't be taken: they refuse the import, or go to a dataset of their own, visible with the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import ColumnMismatch, LakewardError, NameTaken, SourceFileError, UsageError
from lakeward.wiring.rejected import COLUMNS, rejected_name

Write = Callable[[str, str], Path]
ARMS = ("postgres", "iceberg")


def rejected(ws: lakeward.Workspace, name: str) -> list[tuple[object, ...]]:
    rows = ws.dataset(rejected_name(name)).to_arrow().to_pylist()
    assert all(list(row) == list(COLUMNS) for row in rows)
    told = ("line", "column", "reason", "record")
    return sorted((Path(row["file"]).name, *(row[each] for each in told)) for row in rows)


def build_of(ws: lakeward.Workspace, name: str) -> object:
    return ws.dataset(name).history()[0].build_id


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_e04_a_value_of_another_type_is_refused_or_quarantined(
    ws: lakeward.Workspace, write: Write, name: str, arm: str, mode: str
) -> None:
    name = f"a.b.{name}"
    ws.import_file(name, write("1.ndjson", '{"id":1,"qty":1}\n'), primary_key=["id"], arm=arm)
    odd = ['{"id":2,"qty":"many"}', '{"id":3,"qty":true}', '{"id":4,"qty":{"a":1}}']
    for number, record in enumerate(odd, start=2):
        runs = write(f"{number}.ndjson", f'{{"id":1,"qty":10}}\n{record}\n')
        with pytest.raises(SourceFileError, match=rf"{number}\.ndjson: line 2, column 'qty'") as caught:
            ws.import_file(name, runs, mode=mode)
        assert caught.value.safe == f"dataset {name} is unchanged at version 1"
    assert ws.dataset(name).to_arrow().to_pylist() == [{"id": 1, "qty": 1}]
    all_of_them = write("all.ndjson", "\n".join([*odd, '{"id":5,"qty":5}']))
    result = ws.import_file(name, all_of_them, mode=mode, on_error="quarantine")
    assert (result.rows_read, result.rows_written, result.rows_rejected, result.row_count) == (4, 1, 3, 2)
    assert ws.dataset(name).to_arrow().sort_by("id").to_pylist() == [{"id": 1, "qty": 1}, {"id": 5, "qty": 5}]
    assert rejected(ws, name) == [
        ("all.ndjson", 1, "qty", "'many' is a text, and no long", odd[0]),
        ("all.ndjson", 2, "qty", "True is a boolean, and no long", odd[1]),
        ("all.ndjson", 3, "qty", "{'a': '1'} is an object, and no long", odd[2]),
    ]
    assert build_of(ws, name) == build_of(ws, rejected_name(name))
    assert ws.dataset(rejected_name(name)).record.arm == arm


def test_f04_a_new_dataset_gets_the_types_of_the_records_that_can_be_read(
    ws: lakeward.Workspace, write: Write, name: str
) -> None:
    name = f"a.b.{name}"
    one, two = write("1.csv", "id,n\n1,a\n2\n3,b,c\n"), write("2.csv", 'id,n\n"4"x,d\n5,e')
    with pytest.raises(SourceFileError, match="line 3"):
        ws.import_file(name, [one, two])
    result = ws.import_file(name, [one, two], on_error="quarantine", max_rejected="60%")
    assert (result.columns, result.rows_read, result.rows_written) == ({"id": "long", "n": "string"}, 5, 2)
    assert [row[:3] for row in rejected(ws, name)] == [("1.csv", 3, None), ("1.csv", 4, None), ("2.csv", 2, "id")]
    # What was rejected can be imported with the same files again, and comes again.
    assert ws.import_file(name, [one, two], on_error="quarantine").rows_rejected == 3
    assert (len(rejected(ws, name)), ws.dataset(name).record.row_count) == (6, 4)


@pytest.mark.parametrize(("limit", "fits"), [(1, False), (2, True), ("49.9%", False), ("50%", True), (0, False)])
@pytest.mark.parametrize("declared", [False, True])
def test_more_than_the_limit_refuses_the_import_and_makes_nothing(
    ws: lakeward.Workspace, write: Write, name: str, limit: str | int, fits: bool, declared: bool
) -> None:
    file = write("in.csv", "id\n1\n2,2\n3,3\n4\n")
    how = {"on_error": "quarantine", "max_rejected": limit, "columns": {"id": "int"} if declared else {}}
    if fits:
        assert ws.import_file(f"a.b.{name}", file, **how).rows_rejected == 2  # type: ignore[arg-type]
        return
    for made in (False, True):
        if made:
            ws.create_dataset(f"a.b.{name}", {"id": "int" if declared else "long"})
        with pytest.raises(SourceFileError, match=r"can't be taken, and .* may be rejected; the first: .*line 3"):
            ws.import_file(f"a.b.{name}", file, **how)  # type: ignore[arg-type]
        assert [each.name for each in ws.datasets() if name in each.name.split("__")[0].split(".")] == (
            [f"a.b.{name}", f"a.b.{name}__rejected"] if made else []
        )
        assert all(each.record.row_count == 0 for each in ws.datasets() if each.name.startswith(f"a.b.{name}"))


@pytest.mark.parametrize("arm", ARMS)
def test_a_dataset_of_rejected_records_may_be_the_older_one(
    ws: lakeward.Workspace, write: Write, name: str, arm: str
) -> None:
    name = f"a.b.{name}"
    ws.create_dataset(rejected_name(name), COLUMNS, arm=arm)
    lines = "".join(f"{number}\n{'x' * (number % 3 == 0)}{number}\n" for number in range(3_000))
    result = ws.import_file(name, write("in.csv", f"id\n{lines}"), columns={"id": "int"}, on_error="quarantine")
    assert (result.rows_read, result.rows_written, result.rows_rejected) == (6_000, 5_000, 1_000)
    assert ws.dataset(rejected_name(name)).record.row_count == 1_000


@pytest.mark.parametrize("bad", ["", "x\n"])
def test_an_import_with_rejected_records_can_be_repeated_by_its_key(
    ws: lakeward.Workspace, write: Write, name: str, bad: str
) -> None:
    name = f"a.b.{name}"
    ws.create_dataset(name, {"id": "int"})
    file = write("in.csv", f"id\n1\n{bad}")
    first = ws.import_file(name, file, on_error="quarantine", idempotency_key="k")
    again = ws.import_file(name, file, on_error="quarantine", idempotency_key="k")
    assert (first.repeated, again.repeated, again.version, again.rows_rejected) == (False, True, 1, len(bad) // 2)
    assert len(rejected(ws, name)) == len(bad) // 2


def test_all_records_may_be_rejected(ws: lakeward.Workspace, write: Write, name: str) -> None:
    name = f"a.b.{name}"
    ws.create_dataset(name, {"id": "int"})
    result = ws.import_file(name, write("in.csv", "id\nx\n"), on_error="quarantine")
    assert (result.rows_written, result.rows_rejected, result.committed, result.version) == (0, 1, False, 0)
    assert len(rejected(ws, name)) == 1


def test_what_can_not_be_meant(ws: lakeward.Workspace, write: Write, name: str) -> None:
    name, file = f"a.b.{name}", write("in.csv", "id\n1\n")

    def refused(kind: type[LakewardError], says: str, **how: object) -> None:
        with pytest.raises(kind, match=says) as caught:
            ws.import_file(name, file, **how)  # type: ignore[arg-type]
        assert caught.value.safe and caught.value.next_step

    refused(UsageError, "unknown way .* there are refuse, quarantine", on_error="ignore")
    refused(UsageError, "none are rejected", max_rejected=3)
    refused(UsageError, "'many' is no limit", on_error="quarantine", max_rejected="many")
    refused(UsageError, "'101%' is no limit", on_error="quarantine", max_rejected="101%")
    refused(UsageError, "mirror deletes", on_error="quarantine", mode="mirror", primary_key=["id"])
    ws.create_dataset(rejected_name(name), {"other": "int"})
    refused(NameTaken, "is another", on_error="quarantine")
    assert ws.dataset(rejected_name(name)).record.row_count == 0


def test_a_column_is_text_by_choice(ws: lakeward.Workspace, write: Write, name: str) -> None:
    file = write("in.csv", "id,zip\n1,10115\n")
    assert ws.import_file(f"a.b.{name}", file, text=["zip"]).columns == {"id": "long", "zip": "string"}
    assert ws.import_file(f"a.b.{name}", file, text=["zip"]).row_count == 2
    with pytest.raises(NameTaken, match="'id' is long there, and string was declared"):
        ws.import_file(f"a.b.{name}", file, text=["id"])
    with pytest.raises(ColumnMismatch, match=r"no column 'postcode' to be read as text; there are id, zip"):
        ws.import_file(f"a.b.{name}_new", file, text=["postcode"])
