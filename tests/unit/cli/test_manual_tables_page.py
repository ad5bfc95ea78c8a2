"""docs/manual-tables.md: every command is run and prints what is shown, and so does its example."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from support.commands import Run
from support.pages import DOCS, Page, Reader

PAGE = Page("manual-tables.md")


def test_the_commands_do_what_the_page_shows(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = list(PAGE.blocks())
    files = dict(
        zip(("plans.csv", "left.csv", "theirs.csv"), [text for kind, text in blocks if kind == "csv"], strict=True)
    )
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    (place / "editor.py").write_text("import shutil, sys\nshutil.copy('left.csv', sys.argv[1])\n")
    monkeypatch.setenv("VISUAL", f"{sys.executable} -S editor.py")
    reader = Reader(run, monkeypatch)
    for language, text in blocks:
        if "theirs.csv" in text:
            mine = Path("mine.csv").read_text(encoding="utf-8")
            Path("mine.csv").write_text(mine.replace("9.00", "9.90"), encoding="utf-8")
        reader.follow(language, text)
    assert reader.compared == PAGE.shown() == 6
    [example] = [text for language, text in blocks if language == "python"]
    capsys.readouterr()
    exec(compile(example, "manual-tables.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^    print\(.*\)  # ([\d ]+)$", example, re.MULTILINE)


@pytest.mark.parametrize("link", PAGE.links())
def test_the_links_lead_somewhere(link: str) -> None:
    assert (DOCS / link).exists()
