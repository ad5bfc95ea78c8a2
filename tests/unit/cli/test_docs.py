"""docs/cli.md tells of every command, option, setting and exit code, as they are."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_cli_reference", ROOT / "docs" / "make_cli_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_fresh(generator: ModuleType) -> None:
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), "run: python docs/make_cli_reference.py"


def test_every_option_has_help(generator: ModuleType) -> None:
    root = generator.typer.main.get_command(generator.app)
    for path, command in generator._commands(root, "lakeward"):
        assert command.help, path
        for parameter in command.params:
            assert parameter.help, (path, parameter.name)
            assert generator._shown(parameter) in generator.PAGE.read_text() or parameter.name == "help"
