"""Runs a page of docs/: its commands end with the exit code that is told, and print what is shown."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import Run, process

DOCS = Path(__file__).resolve().parents[2] / "docs"

CHANGING = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  |\d+\.\d\d s\b|bytes \d+|\b\d{16,19}\b"
"""What is another one each time: when something happened, how long it took, how many bytes it was, a snapshot's id."""


class Page:
    """One page.

    Args:
        name: of its file.
    """

    def __init__(self, name: str) -> None:
        self.text = (DOCS / name).read_text(encoding="utf-8")

    def blocks(self) -> Iterator[tuple[str, str]]:
        """The fenced blocks in their order: language and text."""
        for found in re.finditer(r"^```(\w*)\n(.*?)^```", self.text, re.MULTILINE | re.DOTALL):
            yield found[1], found[2]

    def links(self) -> list[str]:
        """The files that it leads to."""
        return re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", self.text)

    def shown(self) -> int:
        """How many blocks show what is printed."""
        return sum(language == "text" for language, _ in self.blocks())


class Reader:
    """Somebody who does what a page says, block by block.

    Args:
        run: runs commands.
        monkeypatch: for `cd`.
    """

    def __init__(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run = run
        self._monkeypatch = monkeypatch
        self._printed = ""
        self.compared = 0

    def follow(self, language: str, text: str) -> None:
        """Write the file, run the commands, or compare what they have printed."""
        named = re.match(r"# (\S+\.\w+)\n", text)
        if language in ("yaml", "python") and named:
            Path(named[1]).parent.mkdir(exist_ok=True)
            Path(named[1]).write_text(text)
        elif language in ("sh", "crontab"):
            self._printed = ""
            for line, code in _commands(text.partition("&& ")[2] if language == "crontab" else text):
                self._printed += self._command(line, code)
        elif language == "text":
            there = words(self._printed)
            missing = [line for line in words(text) if not any(line in each for each in there)]
            assert not missing, (missing, self._printed)
            self.compared += 1

    def _command(self, line: list[str], code: int) -> str:
        if line[0] == "cd":
            self._monkeypatch.chdir(line[1])
            self._monkeypatch.delenv("LAKEWARD_HOME")
            return ""
        if "--watch" in line:
            return _watch(line[1:])
        ran = self._run(*line[1:])
        assert ran.code == code, (line, ran.out, ran.err)
        return ran.out + ran.err


def words(text: str) -> list[str]:
    """The lines of a text, without what only lays them out, and what is another one each time."""
    laid_out = (re.sub(r"[│├└─]", " ", re.sub(CHANGING, "…", line)) for line in text.splitlines())
    lines = (" ".join(line.split()) for line in laid_out)
    return [line for line in lines if line]


def _commands(block: str) -> Iterator[tuple[list[str], int]]:
    """The commands of a block, and the exit code that each is to have."""
    for line in block.splitlines():
        code = re.search(r"# exit code (\d)", line)
        yield shlex.split(line, comments=True), int(code[1]) if code else 0


def _watch(arguments: list[str]) -> str:
    """Start what does not end by itself, and end it by Ctrl-C."""
    child = process(*arguments)
    assert child.stdout is not None
    first = child.stdout.readline()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, ""), err
    return first + out
