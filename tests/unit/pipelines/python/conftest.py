"""A project folder with Python in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lakeward.pipelines.project import Project, load_project


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Writes files into the project's folder, by their paths in it, and returns the folder."""
    root = tmp_path / "project"

    def written(files: dict[str, str]) -> Path:
        for name, text in {"lakeward.toml": "", **files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    return written


@pytest.fixture
def load(write: Callable[[dict[str, str]], Path]) -> Callable[[dict[str, str]], Project]:
    """Writes files, and loads the project."""
    return lambda files: load_project(write(files))
