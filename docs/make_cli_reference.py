"""Writes the reference part of `docs/cli.md` from the commands and settings themselves. A test fails if it is stale.

python docs/make_cli_reference.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from pydantic import BaseModel

from lakeward.cli.app import EXIT_CODES, app
from lakeward.cli.command import COMMON
from lakeward.wiring.settings import ENVIRONMENT_PREFIX, Settings

PAGE = Path(__file__).with_name("cli.md")
MARK = "<!-- The reference below is written by docs/make_cli_reference.py -->\n"
_COMMON = {parameter.name for parameter in COMMON}


def reference() -> str:
    """Return the reference as Markdown."""
    root = typer.main.get_command(app)
    lines = ["## Where commands are run", "", "Before the command's name. See [remote.md](remote.md).", ""]
    lines += _options([parameter for parameter in root.params if parameter.name in ("server", "token", "token_file")])
    lines += ["## Common options", "", "Every command takes them, after its name.", ""]
    first = next(command for _, command in _commands(root, "lakeward"))
    lines += _options([parameter for parameter in first.params if parameter.name in _COMMON])
    lines += ["## Commands", ""]
    for path, command in _commands(root, "lakeward"):
        lines += [f"### `{path}`", "", *_help(command), ""]
        lines += _options([parameter for parameter in command.params if parameter.name not in {*_COMMON, "help"}])
    lines += ["## Settings", "", "| setting | variable | default | meaning |", "|---|---|---|---|"]
    lines += [*_settings(Settings, ""), "", "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(lines) + "\n"


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    subcommands = getattr(command, "commands", None)
    if subcommands is None:
        yield path, command
        return
    for name, each in subcommands.items():
        yield from _commands(each, f"{path} {name}")


def _help(command: Any) -> list[str]:
    return [line.rstrip() for line in inspect.cleandoc(command.help or "").splitlines()]


def _options(parameters: list[Any]) -> list[str]:
    if not parameters:
        return []
    return [
        "| argument or option | meaning |",
        "|---|---|",
        *(f"| `{_shown(each)}` | {_text(each)} |" for each in parameters),
        "",
    ]


def _shown(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name)
    names = [*parameter.opts, *parameter.secondary_opts]
    flag = getattr(parameter, "is_flag", False) or getattr(parameter, "count", False)
    value = "" if flag else f" {parameter.metavar or parameter.name.upper()}"
    return f"{', '.join(names)}{value}".replace("|", "\\|")


def _text(parameter: Any) -> str:
    text = str(parameter.help or "").replace("|", "\\|")
    default = parameter.default
    if default in (None, False, True, 0, ()) or parameter.param_type_name == "argument" or str(default) == ".":
        return text
    return f"{text} Default: {getattr(default, 'value', default)}."


def _settings(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _settings(field.annotation, f"{key}.")
            continue
        variable = ENVIRONMENT_PREFIX + key.upper().replace(".", "__")
        if name == "catalog":
            variable += "__<PROPERTY>"
        default = "" if field.default in (None, {}) else f"`{field.default}`"
        yield f"| `{key}` | `{variable}` | {default} | {field.description} |"


def page() -> str:
    """Return the whole page with a fresh reference."""
    written = PAGE.read_text(encoding="utf-8")
    head = re.split(re.escape(MARK), written, maxsplit=1)[0]
    return f"{head}{MARK}\n{reference()}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
