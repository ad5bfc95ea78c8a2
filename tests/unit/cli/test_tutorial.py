"""docs/tutorial.md: every command is run, ends with the exit code that is told, and prints what is shown."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import Run, process

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")


def blocks() -> Iterator[tuple[str, str]]:
    """The fenced blocks in their order: language and text."""
    for found in re.finditer(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        yield found[1], found[2]


def words(text: str) -> list[str]:
    """The lines of a text, without what only lays them out."""
    lines = (" ".join(re.sub(r"[│├└─]", " ", line).split()) for line in text.splitlines())
    return [line for line in lines if line]


def commands(block: str) -> Iterator[tuple[list[str], int]]:
    """The commands of a block, and the exit code that each is to have."""
    for line in block.splitlines():
        code = re.search(r"# exit code (\d)", line)
        yield shlex.split(line, comments=True), int(code[1]) if code else 0


def watch(arguments: list[str]) -> str:
    """Start what does not end by itself, and end it by Ctrl-C."""
    child = process(*arguments)
    assert child.stdout is not None
    first = child.stdout.readline()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, ""), err
    return first + out


def test_the_commands_do_what_the_page_shows(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = ""
    shown = 0
    for language, text in blocks():
        named = re.match(r"# (\S+\.\w+)\n", text)
        if language in ("yaml", "python") and named:
            Path(named[1]).parent.mkdir(exist_ok=True)
            Path(named[1]).write_text(text)
        elif language == "yaml":
            assert set(words(text)) <= set(words(Path("pipelines/orders.yml").read_text()))
        elif language in ("sh", "crontab"):
            printed = ""
            for line, code in commands(text.partition("&& ")[2] if language == "crontab" else text):
                if line[0] == "cd":
                    monkeypatch.chdir(line[1])
                    monkeypatch.delenv("LAKEWARD_HOME")
                elif "--watch" in line:
                    printed += watch(line[1:])
                else:
                    ran = run(*line[1:])
                    assert ran.code == code, (line, ran.out, ran.err)
                    printed += ran.out + ran.err
        elif language == "text":
            there = words(printed)
            missing = [line for line in words(text) if not any(line in each for each in there)]
            assert not missing, (missing, printed)
            shown += 1
    assert shown == text_blocks() > 5


def text_blocks() -> int:
    return sum(language == "text" for language, _ in blocks())


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGE))
def test_the_links_lead_somewhere(link: str) -> None:
    assert (DOCS / link).exists()
