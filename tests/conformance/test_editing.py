"""Rows that people edit, on each arm and on both at once: what is applied, refused, kept apart and taken back."""

from __future__ import annotations

import csv
import datetime
import uuid
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakeward
from lakeward.errors import (
    ColumnMismatch,
    ConflictError,
    DuplicateKey,
    SchemaError,
    SourceFileError,
    UnknownVersion,
    UsageError,
    ValueRefused,
)
from lakeward.wiring.edit_diff import Edit
from lakeward.wiring.editing import Limits
from support.arms import ArmUnderTest, HeldDataset

MODES = {"pg": "postgres", "iceberg_native": "iceberg", "dual": "postgres", "iceberg_dual": "iceberg"}
COLUMNS = {"id": "long", "note": "string"}
Made = Callable[..., lakeward.Dataset]


@pytest.fixture(params=MODES)
def made(request: pytest.FixtureRequest, shared: lakeward.Workspace) -> Made:
    """Makes datasets of each mode."""

    def make(columns: Any = None, key: Any = ("id",), rows: Any = ()) -> lakeward.Dataset:
        held: HeldDataset = ArmUnderTest(shared, MODES[request.param]).create(columns or COLUMNS, key)
        if "dual" in request.param:
            shared.replication.reroute(held.record, request.param)
        dataset = shared.dataset(held.created.name)
        if rows:
            dataset.write(rows)
        return dataset

    return make


def notes(*pairs: tuple[int, str | None]) -> list[dict[str, Any]]:
    return [{"id": id_, "note": note} for id_, note in pairs]


def rows(dataset: lakeward.Dataset) -> list[dict[str, Any]]:
    """The rows as they stand, after a look at whether both arms have them if there are two."""
    assert dataset.verify().equal
    return dataset.preview(100).to_pylist()


def edit_file(dataset: lakeward.Dataset, path: Path, change: Callable[[list[list[str]]], Any]) -> Edit:
    """Write the sheet, let `change` work on its records, and read it back."""
    sheet = dataset.editor.open()
    path.unlink(missing_ok=True)
    sheet.write(path)
    records = [list(record) for record in csv.reader(path.open(encoding="utf-8", newline=""))]
    change(records)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\r\n").writerows(records)
    return sheet.read(path)


def test_an_edit_is_one_version_with_its_author_and_is_taken_back(made: Made, tmp_path: Path) -> None:
    dataset = made(rows=notes((1, "a"), (2, "b"), (3, "c")))

    def change(records: list[list[str]]) -> None:
        assert records[0] == ["id", "note"]
        records[2][1] = "B"
        del records[3]
        records.append(["4", "d"])

    edit = edit_file(dataset, tmp_path / "rows.csv", change)
    assert edit.to_json() == {
        "added": [{"id": "4", "note": "d"}],
        "changed": [{"key": {"id": "2"}, "columns": {"note": {"before": "b", "after": "B"}}}],
        "removed": [{"id": "3", "note": "c"}],
    }
    result = dataset.editor.apply(edit, author="anna")
    assert (result.rows_added, result.rows_updated, result.rows_deleted) == (1, 1, 1)
    assert result.version == dataset.version > edit.version
    assert rows(dataset) == notes((1, "a"), (2, "B"), (4, "d"))
    newest, *_, first = dataset.history(idle=False)
    assert (newest.writer, newest.author, newest.verb, first.author) == ("manual.table", "anna", "changes", None)
    # What nobody touches is no version.
    sheet = dataset.editor.open()
    assert not dataset.editor.apply(sheet.edit(sheet.rows.table)).committed
    with pytest.raises(UnknownVersion, match=f"no edit made version {edit.version}"):
        dataset.editor.inverse(edit.version)
    dataset.write(notes((9, "later")))
    assert dataset.editor.apply(dataset.editor.inverse()).committed
    assert sorted(rows(dataset), key=lambda row: row["id"]) == notes((1, "a"), (2, "b"), (3, "c"), (9, "later"))
    dataset.editor.apply(dataset.editor.inverse())
    assert sorted(rows(dataset), key=lambda row: row["id"]) == notes((1, "a"), (2, "B"), (4, "d"), (9, "later"))


def test_without_a_key_rows_are_matched_by_their_id(made: Made, tmp_path: Path) -> None:
    dataset = made(key=(), rows=notes((1, "a"), (1, "a"), (2, "b")))

    def change(records: list[list[str]]) -> None:
        assert records[0] == ["__row_id", "id", "note"]
        records[2][2] = "second"
        del records[3]
        records.append(["", "5", "new"])

    edit = edit_file(dataset, tmp_path / "rows.csv", change)
    assert [len(each) for each in (edit.added, edit.changed, edit.removed)] == [1, 1, 1]
    dataset.write(notes((7, "beside")))
    dataset.editor.apply(edit)
    assert rows(dataset) == notes((1, "a"), (1, "second"), (7, "beside"), (5, "new"))
    back = dataset.editor.inverse()
    assert [len(each) for each in (back.added, back.changed, back.removed)] == [2, 0, 2]
    dataset.editor.apply(back)
    assert sorted(map(str, rows(dataset))) == sorted(map(str, notes((1, "a"), (1, "a"), (2, "b"), (7, "beside"))))
    added = edit_file(dataset, tmp_path / "rows.csv", lambda records: records.append(["", "8", ""]))
    assert dataset.editor.apply(added).verb == "append"
    stale = edit_file(dataset, tmp_path / "rows.csv", lambda records: records[1].__setitem__(2, "mine"))
    dataset.write(notes((6, "all new")), mode="replace")
    with pytest.raises(ConflictError, match=r"__row_id='.*': now removed, yours note='mine'"):
        dataset.editor.apply(stale)
    made_up = dataset.editor.open()
    with pytest.raises(ValueRefused, match="row 1, column '__row_id': '999' is none of the rows that were read"):
        made_up.edit([{"__row_id": 999, "id": 1, "note": "x"}])
    assert rows(dataset) == notes((6, "all new"))


def test_what_others_did_meanwhile_is_never_lost(made: Made, shared: lakeward.Workspace) -> None:
    dataset = made(rows=notes((1, "a"), (2, "b"), (3, "c"), (4, "d")))
    sheet = dataset.editor.open()
    mine = sheet.edit(notes((1, "mine"), (2, "b"), (4, "d"), (5, "same"), (6, "mine")))
    dataset.write(notes((2, "theirs"), (5, "same"), (7, "theirs")), mode="upsert")
    dataset.editor.apply(mine)
    merged = {1: "mine", 2: "theirs", 4: "d", 5: "same", 6: "mine", 7: "theirs"}
    assert {row["id"]: row["note"] for row in rows(dataset)} == merged
    # Those that both changed are named with both values, and nothing of the edit is written.
    sheet = dataset.editor.open()
    mine = sheet.edit(notes((1, "again"), (2, "theirs"), (5, "same"), (6, "x"), (7, "theirs"), (8, "new")))
    dataset.write([{"id": 6}], mode="delete")
    dataset.write(notes((1, "THEIRS"), (4, "changed"), (8, "NEW")), mode="upsert")
    version, before = dataset.version, rows(dataset)
    with pytest.raises(ConflictError) as caught:
        dataset.editor.apply(mine)
    for told in (
        "4 rows that this would change were",
        "id='1': now note='THEIRS', yours note='again'",
        "id='4': now note='changed', yours removed",
        "id='6': now removed, yours note='x'",
        "id='8': now note='NEW', yours note='new'",
    ):
        assert told in caught.value.message
    assert len(caught.value.fields["conflicts"]) == 4  # type: ignore[arg-type]
    assert (dataset.version, rows(dataset)) == (version, before)
    with pytest.raises(ConflictError):
        dataset.editor.check(mine)
    # So is an undo of rows that were changed since.
    with pytest.raises(ConflictError, match="id='1': now note='THEIRS', yours note='a'"):
        dataset.editor.apply(dataset.editor.inverse())
    assert dataset.version == version


def test_every_value_comes_back_as_it_was(made: Made, tmp_path: Path) -> None:
    columns = {
        "id": "string",
        "n": "long",
        "d": "decimal(38,10)",
        "f": "double",
        "ok": "boolean",
        "day": "date",
        "at": "timestamptz",
        "u": "uuid",
        "raw": "binary",
        "j": "json",
        "tags": "list<string>",
        "s": "struct<a: decimal(20,2), b: list<double>, at: timestamp, raw: binary>",
    }
    utc = datetime.UTC
    odd = {
        "id": 'é\n"x",\r\n\u2028 ',
        "n": -(2**63),
        "d": Decimal("1234567890123456789012345678.0000000001"),
        "f": 0.1 + 0.2,
        "ok": False,
        "day": datetime.date(1, 1, 1),
        "at": datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=utc),
        "u": uuid.UUID(int=7),
        "raw": b"\x00\xff",
        "j": '{"a": [1, null, "x"]}',
        "tags": ["", None, 'q"\n', "null"],
        "s": {"a": Decimal("-0.10"), "b": [float("inf"), -1.5, None], "at": datetime.datetime(2024, 2, 29), "raw": b""},
    }
    empty = dict.fromkeys(columns) | {"id": "", "tags": []}
    dataset = made(columns, rows=[odd, empty])
    (tmp_path / "rows.csv").unlink(missing_ok=True)
    sheet = dataset.editor.open()
    sheet.write(tmp_path / "rows.csv")
    same = sheet.read(tmp_path / "rows.csv")
    assert same.empty and same.edited.table.equals(sheet.rows.table)
    # Each row is written anew from the file, but for the key that a person gave it.
    text = (tmp_path / "rows.csv").read_bytes().decode()
    (tmp_path / "rows.csv").write_bytes(text.replace("é\n", "e\n").replace('\n"",', '\n"new",').encode())
    edit = sheet.read(tmp_path / "rows.csv")
    assert (len(edit.added), len(edit.removed)) == (2, 2)
    dataset.editor.apply(edit)
    assert dataset.verify().equal
    assert {row["id"]: row for row in dataset.preview(9).to_pylist()} == {
        odd["id"].replace("é", "e"): odd | {"id": odd["id"].replace("é", "e")},  # type: ignore[attr-defined]
        "new": empty | {"id": "new"},
    }


def test_flips_between_reading_and_writing_change_nothing(shared: lakeward.Workspace) -> None:
    held = ArmUnderTest(shared, "postgres").create(COLUMNS, ["id"])
    dataset = shared.dataset(held.created.name)
    dataset.write(notes((1, "a"), (2, "b")))
    expected = {1: "a", 2: "b"}
    flip = shared.flip(dataset.name)
    steps = [lambda: flip.run(to="iceberg"), flip.revert, flip.run, lambda: flip.complete(confirm=dataset.name)]
    for number, (step, arm) in enumerate(zip(steps, ("iceberg", "postgres", "iceberg", "iceberg"), strict=True)):
        sheet = dataset.editor.open()
        expected |= {1: f"edit {number}", 10 + number: "new"}
        edit = sheet.edit(notes(*expected.items()))
        step()
        assert dataset.arm == arm
        assert dataset.editor.apply(edit).committed
        assert {row["id"]: row["note"] for row in rows(dataset)} == expected
    # An edit of the other arm is taken back on this one.
    dataset.editor.apply(dataset.editor.inverse())
    assert {row["id"]: row["note"] for row in rows(dataset)} == {1: "edit 2", 2: "b", 10: "new", 11: "new", 12: "new"}


def test_what_cannot_be_read_or_is_too_large_is_refused(shared: lakeward.Workspace, tmp_path: Path) -> None:
    created = ArmUnderTest(shared, "postgres").create({"id": "long", "n": "int", "tags": "list<int>"}, ["id"])
    dataset = shared.dataset(created.created.name)
    dataset.write([{"id": n, "n": n, "tags": [n]} for n in range(3)])
    sheet, path = dataset.editor.open(), tmp_path / "rows.csv"

    def refused(text: str, error: type[Exception], match: str) -> None:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(error, match=match) as caught:
            sheet.read(path)
        assert caught.value.safe  # type: ignore[attr-defined]

    header = "id,n,tags\n"
    refused(f"{header}1,1,[1]\n2,two,[2]\n", SourceFileError, r"line 3, column 'n': 'two' is not a int")
    refused(f'{header}1,1,[1]\n2,2,"[2,\n""x""]"\n', SourceFileError, r"line 3, column 'tags': .*'x' is not a int")
    refused(f"{header}1,1,[1\n", SourceFileError, r"line 2, column 'tags': '\[1' is not JSON")
    refused(f"{header}1,1,[1]\n1,2,[1]\n", DuplicateKey, "row 2 has a key that another row has, too: id='1'")
    refused(f"{header},1,[1]\n", ValueRefused, "row 1, column 'id' is empty")
    refused(f"{header}1,1\n", SourceFileError, "line 2")
    refused(f"{header}1,1,\0\n", SourceFileError, "line 2 holds a NUL byte")
    refused("id,n\n1,1\n", ColumnMismatch, "tags")
    refused(header + "1,1,[1]\n" * 10_001, UsageError, r"more than 10,000 rows")
    path.unlink()
    with pytest.raises(UsageError, match="it has 3 rows, and 2 can be edited"):
        dataset.editor.limited(Limits(rows=2)).open()
    with pytest.raises(UsageError, match="more than 10 bytes"):
        dataset.editor.limited(Limits(size_bytes=10)).open()
    with pytest.raises(UsageError, match="more than 5 bytes as CSV"):
        replace(sheet, limits=Limits(size_bytes=5)).write(path)
    assert not path.exists()
    own = ArmUnderTest(shared, "postgres").create({"id": "long", "__OP": "string"}, ["id"])
    with pytest.raises(SchemaError, match="column '__OP' of its own"):
        shared.dataset(own.created.name).editor.open()
    assert dataset.version == 1
