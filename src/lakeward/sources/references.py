"""References to secrets, `env:NAME` and `file:/path`: they are stored, and what they stand for is read when needed."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lakeward.errors import SettingsError

_PASSWORD = re.compile(r"://[^/@\s]*:[^\s]*@|(?:^|[?&\s])(?:ssl)?password\s*=", re.IGNORECASE)


def is_reference(text: str) -> bool:
    """Say whether a text names where a value is, and is not the value."""
    return text.startswith(("env:", "file:"))


def check_reference(text: str, setting: str) -> None:
    """Refuse a text that holds a password itself, without repeating it; and a file that depends on where one is.

    Raises:
        SettingsError: with the way out.
    """
    if text.startswith("file:") and not Path(text.removeprefix("file:")).is_absolute():
        raise SettingsError(
            f"{setting} is {text}, which another directory would make another file",
            safe="nothing was stored",
            next_step="write its full path: file:/run/secrets/name",
            setting=setting,
        )
    if not is_reference(text) and _PASSWORD.search(text):
        raise SettingsError(
            f"{setting} holds a password, which would be stored in clear",
            safe="nothing was stored",
            next_step="put it into a variable or a file, and name that: env:PGURL or file:/run/secrets/pgurl",
            setting=setting,
        )


def resolved(text: str) -> str:
    """Return what a reference stands for; a text that is none stands for itself.

    Raises:
        SettingsError: the variable is not set, or the file can't be read.
    """
    kind, _, place = text.partition(":")
    if kind == "env":
        if not os.environ.get(place):
            raise SettingsError(
                f"the variable {place} is not set, which {text} names",
                safe="nothing was done",
                next_step=f"export {place}=… where lakeward runs",
                reference=text,
            )
        return os.environ[place]
    if kind != "file":
        return text
    try:
        return Path(place).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(
            f"the file {place} can't be read, which {text} names: {reason}",
            safe="nothing was done",
            next_step="let the user who runs lakeward read it",
            reference=text,
        ) from None
