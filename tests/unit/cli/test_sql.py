"""`lakeward sql`: a query whose rows are shown, or go into a file."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import lakeward
from support.commands import Run


def test_rows_are_shown_or_written_to_a_file(
    run: Run, opened: lakeward.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.create_dataset("a.b.orders", {"id": "long"}, ["id"]).write([{"id": number} for number in range(4)])
    shown = run("sql", "select id, id * 2 as twice from a.b.orders order by id", "-n", "2")
    assert shown.code == 0 and "2 rows; there are more" in shown.out, shown.err
    asked = run("sql", "select sum(id) as s from a.b.orders", "--output", "json").document
    assert (asked["rows"], asked["truncated"], asked["versions"]) == ([{"s": "6"}], False, {"a.b.orders": 1})
    monkeypatch.setattr("sys.stdin", io.StringIO("select id from a.b.orders order by id"))
    file = tmp_path / "ids.csv"
    assert run("sql", "-", "--to", file).code == 0 and file.read_text() == "id\n0\n1\n2\n3\n"
    refused = run("sql", "select 1 as a", "--to", file)
    assert refused.code == 2 and "--force" in refused.err
    assert run("sql", "select 1 as a", "--force").code == 2
    wrong = run("sql", "drop table x")
    assert wrong.code == 2 and "SELECT" in wrong.err
