"""Which server commands go to, and as whom: said before the command, or by the environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lakeward.errors import UsageError

OPTIONS = ("--server", "--token", "--token-file")
VARIABLES = {"--server": "LAKEWARD_SERVER", "--token": "LAKEWARD_TOKEN", "--token-file": "LAKEWARD_TOKEN_FILE"}


@dataclass(frozen=True)
class Target:
    """A server.

    Args:
        url: without a path's last slash.
        token: of who asks; None: the server asks for none. Shown nowhere.
    """

    url: str
    token: str | None = field(default=None, repr=False)


def split(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return what the options before the command say, and the rest: the command with its own.

    Example:
        >>> split(["--server=https://data.example.com", "status"])
        ({'--server': 'https://data.example.com'}, ['status'])
    """
    said: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, equals, value = rest[0].partition("=")
        if name not in OPTIONS:
            break
        if not equals:
            if len(rest) == 1:
                raise UsageError(f"{name} needs a value", safe="nothing was done")
            value = rest.pop(1)
        said[name] = value
        del rest[0]
    return said, rest


def target_of(said: dict[str, str]) -> Target | None:
    """Return the server that options and environment name; None: commands are run here.

    Args:
        said: what the options before the command say.

    Raises:
        UsageError: it is no URL, or the file of the token can't be read.
    """
    url = _value("--server", said)
    if url is None:
        if "--token" in said or "--token-file" in said:
            raise UsageError("a token is for a server", safe="nothing was done", next_step="add --server URL")
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise UsageError(
            "the server's address is no http:// or https:// URL without a user",
            safe="nothing was sent",
            next_step="lakeward --server https://data.example.com --token-file FILE …",
        )
    return Target(url.rstrip("/"), _token(said))


def _token(said: dict[str, str]) -> str | None:
    # What is said with the command counts before what the environment says, whichever way each says it.
    for where in (said, {name: os.environ[each] for name, each in VARIABLES.items() if os.environ.get(each)}):
        if "--token" in where:
            return where["--token"].strip()
        if "--token-file" in where:
            return _read(Path(where["--token-file"]).expanduser())
    return None


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"the token in {path} can't be read: {reason}", safe="nothing was sent") from None
    if not text or not text.isascii() or len(text.split()) != 1:
        raise UsageError(f"{path} does not hold one token", safe="nothing was sent")
    return text


def _value(option: str, said: dict[str, str]) -> str | None:
    return said.get(option) or os.environ.get(VARIABLES[option]) or None
