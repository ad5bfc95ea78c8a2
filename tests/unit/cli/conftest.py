"""Runs commands as the entry point does, in this process, on a workspace of the test's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.cli.app import main
from support.commands import Ran, Run


@pytest.fixture
def place(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory that commands run in, with a workspace of its own named by the environment."""
    for name in [name for name in os.environ if name.startswith("LAKEWARD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LAKEWARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", database_url)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `lakeward …` in this process; arguments may be paths."""

    def call(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(str(end.code))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def opened(place: Path) -> Iterator[lakeward.Workspace]:
    """The same workspace, through the Python API."""
    with lakeward.open() as workspace:
        yield workspace
