"""Files from the command line: patterns in quotes, and folders as sources."""

from __future__ import annotations

import json
from pathlib import Path

from support.commands import Run


def test_a_pattern_in_quotes(run: Run, place: Path) -> None:
    (place / "in").mkdir()
    for number in (2, 1):
        (place / f"in/{number}.csv").write_text(f"id\n{number}\n")
    planned = run("dataset", "import", "a.b.c", "in/*.csv", "--dry-run")
    assert planned.code == 0
    assert (
        planned.out.index("read in/1.csv") < planned.out.index("read in/2.csv") < planned.out.index("2 rows of 2 files")
    )
    done = run("dataset", "import", "a.b.c", "in/*.csv", "in/1.csv")
    assert done.code == 0 and "2 rows read of 2 files = 2 rows written" in done.out
    assert "dataset a.b.c is at version 1 with 2 rows" in done.out


def test_a_folder_as_a_source(run: Run, place: Path) -> None:
    (place / "in").mkdir()
    (place / "in/sales_1.csv").write_text("id;n\n1;NA\n2;x\n")
    for wrong, says in (
        (("--path", "in/*.csv", "--option", "nope=1"), "unknown option 'nope'"),
        (("--path", "in/*.csv", "--option", "nope"), "--option nope has no value"),
        (
            (
                "--path",
                "gone/*.csv",
            ),
            "gone does not exist",
        ),
        (("--path", "in/*.csv", "--option", "secret_access_key=clear"), "it is a secret"),
        (("--url", "env:PGURL", "--type", "files"), "option 'path'"),
    ):
        refused = run("source", "add", "sales", *wrong)
        assert refused.code == 2 and says in refused.err and "clear\n" not in refused.err, wrong
    added = run("source", "add", "sales", "--path", "in/sales_*.csv", "--delimiter", ";", "--null", "NA")
    assert added.code == 0 and "added source sales: files, every table" in added.out
    [table] = json.loads(run("source", "tables", "sales", "--output", "json").out)["tables"]
    assert (table["table"], table["about"]) == ("sales", "1 file")
    planned = run("source", "sync", "sales", "--mode", "append", "--dry-run")
    assert planned.code == 0 and "rows that are new" in planned.out and "main.sales.sales" in planned.out
    first = run("source", "sync", "sales", "--mode", "append")
    assert first.code == 0 and "2 rows read of 1 file = 2 rows written" in first.out
    assert "0 rows read = 0 rows written" in run("source", "sync", "sales", "--mode", "append").out
    (place / "in/sales_2.csv").write_text("id;n\n3;y\n")
    document = json.loads(run("source", "sync", "sales", "--mode", "append", "--output", "json").out)
    assert document["datasets"][0]["files"] == [str(place / "in/sales_2.csv")]
    (place / "in/sales_2.csv").write_text("id;n\n3;y\n4;z\n")
    refused = run("source", "sync", "sales", "--mode", "append")
    assert refused.code == 1 and "sales_2.csv: was changed after its rows were read" in refused.err
    assert "path /" in run("source", "list").out
    [source] = json.loads(run("source", "list", "--output", "json").out)["sources"]
    assert source["options"] == {"path": [f"{place}/in/sales_*.csv"], "delimiter": ";", "null_markers": ["NA"]}
