"""docs/ingest.md: its example prints what it says, and an import that is repeated by its key writes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.commands import Run
from support.pages import Page

PAGE = Page("ingest.md")


def test_the_example_prints_what_it_says(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [example] = [text for language, text in PAGE.blocks() if language == "python"]
    exec(compile(example, "ingest.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^    print\(.*\)  # (.+)$", example, re.MULTILINE)


def test_an_import_is_repeated(run: Run, place: Path) -> None:
    (place / "orders.csv").write_text("id,note\n1,a\n2,b\n")
    how = ["dataset", "import", "main.shop.orders", "orders.csv", "--idempotency-key", "orders of 2024-05-01"]
    assert "at version 1 with 2 rows" in run(*how).out
    again = run(*how)
    assert (
        again.code,
        "nothing was written now: an import with this key did it before, as version 1" in again.out,
    ) == (
        0,
        True,
    )
    document = run(*how, "--output", "json").document
    assert (document["repeated"], document["rows_read"], document["row_count"]) == (True, 2, 2)
    (place / "orders.csv").write_text("id,note\n1,a\n3,b\n")
    refused = run(*how)
    assert refused.code == 2 and "stands for a request with other rows" in refused.err
    assert "Next: give another request a key of its own" in refused.err
