"""docs/tutorial.md: every command is run, ends with the exit code that is told, and prints what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import Run
from support.pages import DOCS, Page, Reader, words

PAGE = Page("tutorial.md")


def test_the_commands_do_what_the_page_shows(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(run, monkeypatch)
    for language, text in PAGE.blocks():
        if language == "yaml" and not text.startswith("# "):
            assert set(words(text)) <= set(words(Path("pipelines/orders.yml").read_text()))
        reader.follow(language, text)
    assert reader.compared == PAGE.shown() > 5


@pytest.mark.parametrize("link", PAGE.links())
def test_the_links_lead_somewhere(link: str) -> None:
    assert (DOCS / link).exists()
