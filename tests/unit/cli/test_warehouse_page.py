"""docs/warehouse.md: every command is run and prints what is shown, and so do the snippets for other engines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.commands import Run
from support.pages import DOCS, Page, Reader

PAGE = Page("warehouse.md")

ONLY_SHOWN = ("born_in_place_by_writer", "spark.sql", "CATALOG_URI=")
"""What is in blocks that show what nobody prints."""


def written(text: str) -> None:
    """Put a file's section where the page wants it: over the one that is there."""
    name, section = text.split("\n", 2)[:2]
    path = Path(name.removeprefix("# "))
    kept = path.read_text(encoding="utf-8").partition(section)[0] if path.name == "lakeward.toml" else ""
    path.write_text(kept + text.partition("\n")[2], encoding="utf-8")


def test_the_commands_do_what_the_page_shows(
    run: Run,
    place: Path,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LAKEWARD_ICEBERG__BORN_IN_PLACE", "false")
    reader, shown = Reader(run, monkeypatch), 0
    for language, text in PAGE.blocks():
        if language == "toml" and Path("lakeward.toml").exists():
            monkeypatch.delenv("LAKEWARD_ICEBERG__BORN_IN_PLACE", raising=False)
            written(text)
        elif language == "text" and any(word in text for word in ONLY_SHOWN):
            continue
        else:
            shown += language == "text"
            reader.follow(language, text)
    assert reader.compared == shown == 5
    monkeypatch.setenv("CATALOG_URI", database_url.replace("postgresql://", "postgresql+psycopg://", 1))
    [snippet] = [text for language, text in PAGE.blocks() if language == "python"]
    capsys.readouterr()
    exec(compile(snippet, "warehouse.md", "exec"), {})
    assert capsys.readouterr().out.split() == re.findall(r"^print\(.*\)  # (\d+)$", snippet, re.MULTILINE)


@pytest.mark.parametrize("link", PAGE.links())
def test_the_links_lead_somewhere(link: str) -> None:
    assert (DOCS / link).exists()
