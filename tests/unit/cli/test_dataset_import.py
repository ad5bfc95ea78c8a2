"""Files into datasets by command: what is refused, how it is named, and that the dataset stays as it was."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import lakeward
from support.commands import Run

ROWS = 300_000


def unchanged(run: Run, name: str, version: int, rows: int) -> None:
    shown = run("dataset", "show", name, "--output", "json").document
    assert (shown["version"], shown["row_count"]) == (version, rows)


def test_import_makes_the_dataset_and_counts_rows(run: Run, place: Path) -> None:
    (place / "t.csv").write_text('id,note\n1,""\n2,\n3,NA\n')
    ran = run("dataset", "import", "a.b.c", "t.csv", "--null", "NA", "--key", "id")
    assert (ran.code, ran.err) == (0, "")
    assert "3 rows read = 3 rows written" in ran.out and "Next: lakeward dataset preview a.b.c" in ran.out
    preview = run("dataset", "preview", "a.b.c", "--output", "json").document
    assert preview["rows"] == [{"id": 1, "note": ""}, {"id": 2, "note": None}, {"id": 3, "note": None}]
    listed = run("dataset", "list", "--output", "json").document["datasets"]
    assert listed[0]["columns"] == {"id": "long", "note": "string"} and listed[0]["primary_key"] == ["id"]


def test_replace_and_append_on_both_arms(run: Run, place: Path) -> None:
    (place / "t.csv").write_text("id,amount\n1,10.50\n2,0.05\n")
    for arm in ("postgres", "iceberg"):
        name = f"a.b.{arm}"
        how = ["--columns", "id:long,amount:decimal(18,4)", "--arm", arm]
        assert run("dataset", "import", name, "t.csv", *how).code == 0
        again = run("dataset", "import", name, "t.csv", *how, "--output", "json").document
        assert (again["created"], again["version"], again["row_count"]) == (False, 2, 4)
        replaced = run("dataset", "import", name, "t.csv", "--mode", "replace", "--output", "json").document
        assert (replaced["rows_read"], replaced["rows_written"], replaced["row_count"]) == (2, 2, 2)
        rows = run("dataset", "preview", name, "--output", "json").document["rows"]
        assert sorted(row["amount"] for row in rows) == ["0.0500", "10.5000"]


def test_f02_a_wrong_value_in_row_300_001_changes_nothing(run: Run, place: Path) -> None:
    good = "".join(f"{number},7.25\n" for number in range(1, ROWS + 1))
    (place / "bad.csv").write_text(f"id,v\n{good}{ROWS + 1},7.2.5\n")
    declared = ["--columns", "id:long,v:double"]
    (place / "one.csv").write_text("id,v\n0,1.5\n")
    assert run("dataset", "import", "a.b.c", "one.csv", *declared).code == 0
    ran = run("dataset", "import", "a.b.c", "bad.csv", "--output", "json")
    error = ran.document
    assert (ran.code, ran.err, error["error"]) == (1, "", "SourceFileError")
    assert error["fields"]["line"] == ROWS + 2 and error["fields"]["column"] == "v"
    assert "'7.2.5'" in error["message"] and "a.b.c is unchanged at version 1" in error["safe"]
    unchanged(run, "a.b.c", 1, 1)
    # A dataset that would be new is not made, with declared types either; without, the full scan says text.
    assert run("dataset", "import", "a.b.new", "bad.csv", *declared).code == 1
    assert run("dataset", "show", "a.b.new").code == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"h,i\n10,20\n30,40,50\n", "line 3", id="f04-ragged-long"),
        pytest.param(b"h,i\n10,20\n30\n", "line 3", id="f04-ragged-short"),
        pytest.param("id,name\n1,é\n".encode("latin-1"), "line 2", id="latin-1-bytes"),
        pytest.param(b"", "empty", id="empty-file"),
        pytest.param(b"id,id\n1,2\n", "'id' (column 1)", id="n02-equal-headers"),
        pytest.param(b"kg,KG\n1,2\n", "'KG' (column 2)", id="n02-twin-headers"),
        pytest.param(b'id,n\n1,"open\n', "line 2", id="quote-never-closed"),
        pytest.param(b"id,t\n1,a\0b\n", "NUL", id="t06-nul"),
    ],
)
def test_files_that_are_not_what_they_claim(run: Run, place: Path, content: bytes, says: str) -> None:
    (place / "bad.csv").write_bytes(content)
    ran = run("dataset", "import", "a.b.c", "bad.csv")
    assert (ran.code, ran.out) == (1, "")
    assert "bad.csv" in ran.err and says in ran.err and "Traceback" not in ran.err
    assert run("dataset", "show", "a.b.c").code == 2


def test_f01_bom_and_quoted_newlines_and_encodings(run: Run, place: Path) -> None:
    (place / "bom.csv").write_bytes(b'\xef\xbb\xbf"size, mm",note\n"12, flat","two\nlines"\n')
    (place / "latin.csv").write_bytes("size, mm;note\n3;é\n".encode("latin-1"))
    assert run("dataset", "import", "a.b.c", "bom.csv").code == 0
    latin = run("dataset", "import", "a.b.c", "latin.csv", "--delimiter", ";", "--encoding", "latin-1")
    assert latin.code == 0, latin.err
    rows = run("dataset", "preview", "a.b.c", "--output", "json").document["rows"]
    assert rows == [{"size, mm": "12, flat", "note": "two\nlines"}, {"size, mm": "3", "note": "é"}]
    # In text a line break is not one: it can't shift the table.
    assert "two\\nlines" in run("dataset", "preview", "a.b.c").out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["a.b.c", "missing.csv"], 2, "missing.csv does not exist"),
        (["a.b.c", "."], 2, "no format reads"),
        (["a.b.c", "t.txt"], 2, "t.txt"),
        (["a.b.new", "t.csv", "--no-create"], 2, "unknown dataset a.b.new"),
        (["a.b", "t.csv"], 2, "not a dataset's full name"),
        (["a.b.c", "t.csv", "--mode", "merge"], 2, "'merge'"),
        (["a.b.c", "t.csv", "--arm", "duck"], 2, "unknown arm 'duck'"),
        (["a.b.c", "t.csv", "--arm", "iceberg"], 2, "it is on the postgres arm"),
        (["a.b.c", "t.csv", "--columns", "id:string"], 2, "column 'id' is long there"),
        (["a.b.c", "t.csv", "--key", "id"], 2, "its primary key is none"),
        (["a.b.c", "t.csv", "--columns", "id"], 2, "'id' declares no column"),
        (["a.b.c", "t.csv", "--delimiter", "ab"], 2, "delimiter 'ab'"),
        (["a.b.c", "other.csv"], 1, "missing in the file: id; only in the file: x"),
        (["a.b.c", "none.csv", "--mode", "replace"], 1, "zero rows"),
    ],
)
def test_what_can_not_be_meant(run: Run, place: Path, arguments: list[str], code: int, says: str) -> None:
    for name, text in (("t.csv", "id\n1\n"), ("t.txt", ""), ("other.csv", "x\n1\n"), ("none.csv", "id\n")):
        (place / name).write_text(text)
    assert run("dataset", "create", "a.b.c", "--columns", "id:long").code == 0
    assert run("dataset", "import", "a.b.c", "t.csv").code == 0
    ran = run("dataset", "import", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    unchanged(run, "a.b.c", 1, 1)


def test_nothing_to_write_is_no_version(run: Run, place: Path) -> None:
    (place / "none.csv").write_text("id\n")
    assert run("dataset", "create", "a.b.c", "--columns", "id:long").code == 0
    ran = run("dataset", "import", "a.b.c", "none.csv", "--output", "json")
    assert ran.code == 0 and ran.document["committed"] is False and ran.document["version"] == 0


def test_f05_export_and_import_are_equal_in_both_formats(run: Run, opened: lakeward.Workspace, place: Path) -> None:
    source = opened.create_dataset("a.b.c", {"id": "long", "n": "string", "d": "decimal(20,6)", "f": "double"}, ["id"])
    source.write(
        [
            {"id": 1, "n": "", "d": Decimal("0.1"), "f": 0.1},
            {"id": 2, "n": None, "d": None, "f": float("nan")},
            {"id": 3, "n": 'NULL,"\n', "d": Decimal("-1.000001"), "f": float("-inf")},
        ]
    )
    columns = "id:long,n:string,d:decimal(20,6),f:double"
    for file in ("out.csv", "out.parquet"):
        written = run("dataset", "export", "a.b.c", file, "--output", "json").document
        assert written["rows"] == 3 and written["size_bytes"] == (place / file).stat().st_size
        copy = f"a.b.{file.rpartition('.')[2]}"
        assert run("dataset", "import", copy, file, "--columns", columns).code == 0
        assert opened.dataset(copy).digest() == source.digest()
    refused = run("dataset", "export", "a.b.c", "out.csv", "--where", "id = 1")
    assert refused.code == 2 and "out.csv exists already" in refused.err
    assert (place / "out.csv").read_text().count("\n") == 5
    assert run("dataset", "export", "a.b.c", "out.csv", "--where", "id = 1", "--select", "n,id", "--force").code == 0
    assert (place / "out.csv").read_text() == 'n,id\n"",1\n'
    assert run("dataset", "export", "a.b.c", "out.xlsx").code == 2


def test_t07_e04_rows_of_json(run: Run, place: Path) -> None:
    (place / "t.ndjson").write_text('{"id": 9007199254740993, "big": 12345678901234567890123, "o": {"m": 1.10}}\n')
    (place / "more.json").write_text('[\n{"id": 1},\n{"id": "many"}\n]')
    for arm in ("postgres", "iceberg"):
        name = f"a.b.{arm}"
        ran = run("dataset", "import", name, "t.ndjson", "--key", "id", "--arm", arm)
        assert (ran.code, ran.err) == (0, "") and "1 row read = 1 row written" in ran.out
        row = run("dataset", "preview", name, "--output", "json").document["rows"][0]
        assert [str(row[column]) for column in ("id", "big", "o")] == [
            "9007199254740993",
            "12345678901234567890123",
            '{"m": 1.1}',
        ]
        error = run("dataset", "import", name, "more.json", "--mode", "upsert", "--output", "json").document
        assert (error["error"], error["fields"]["line"], error["fields"]["column"]) == ("SourceFileError", 3, "id")
        unchanged(run, name, 1, 1)


def test_f04_what_is_rejected_is_counted_and_shown(run: Run, place: Path) -> None:
    (place / "t.csv").write_text("id,note\n1,a\n2\n3,b,c\n4,d\n")
    refused = run("dataset", "import", "a.b.c", "t.csv", "--on-error", "quarantine", "--max-rejected", "25%")
    assert refused.code == 1 and "2 of 4 records can't be taken, and 25% may be rejected" in refused.err
    planned = run("dataset", "import", "a.b.c", "t.csv", "--on-error", "quarantine", "--dry-run")
    assert "append records that can't be taken to a.b.c__rejected" in " ".join(planned.out.split())
    ran = run("dataset", "import", "a.b.c", "t.csv", "--on-error", "quarantine", "--max-rejected", "2", "--text", "id")
    assert ran.code == 0 and "dataset a.b.c created: id string, note string" in ran.out
    assert "4 rows read = 2 rows written + 2 rejected" in ran.out
    assert "lakeward dataset preview a.b.c__rejected" in ran.out
    rows = run("dataset", "preview", "a.b.c__rejected", "--output", "json").document["rows"]
    assert [(row["line"], row["record"]) for row in rows] == [(3, "2"), (4, "3,b,c")]
    (place / "semicolons.csv").write_text("id;note\n1;a\n")
    assert "--delimiter ';'" in run("dataset", "import", "a.b.d", "semicolons.csv").err
