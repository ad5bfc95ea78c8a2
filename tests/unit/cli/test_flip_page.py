"""docs/flip.md: every command is run and prints what is shown, and its tables are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakeward.control.routes import ARMS_OF
from lakeward.migration.flip import all_stages
from support.commands import Run
from support.pages import DOCS, Page, Reader

PAGE = Page("flip.md")


def first_cells(heading: str) -> list[str]:
    """The names in the first column of the first table after a heading or another text."""
    table = re.search(r"\|---.*\n((?:\|.*\n)+)", PAGE.text[PAGE.text.index(heading) :])
    assert table is not None
    return re.findall(r"^\| `?(\w+)`? ", table[1], re.MULTILINE)


def test_the_commands_do_what_the_page_shows(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = Reader(run, monkeypatch)
    for language, text in PAGE.blocks():
        reader.follow(language, text)
    assert reader.compared == PAGE.shown() > 5
    [example] = [text for language, text in PAGE.blocks() if language == "python"]
    exec(compile(example, "flip.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"^    print\(.*\)  # (\w+)$", example, re.MULTILINE)
    assert [line for line in printed if line in promised] == promised
    assert len(promised) == 3


def test_the_tables_are_those_of_the_code() -> None:
    assert first_cells("## The words") == list(ARMS_OF)
    stages = [stage.name for stage in all_stages()]
    assert first_cells("## Each stage") == first_cells("How to get out") == stages


@pytest.mark.parametrize("link", PAGE.links())
def test_the_links_lead_somewhere(link: str) -> None:
    assert (DOCS / link).exists()


@pytest.mark.parametrize("file, heading", re.findall(r"\]\(([^)#:]*)#([^)]*)\)", PAGE.text))
def test_the_headings_are_there(file: str, heading: str) -> None:
    text = (DOCS / (file or "flip.md")).read_text(encoding="utf-8")
    titles = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)", text, re.M)]
    assert heading in titles
