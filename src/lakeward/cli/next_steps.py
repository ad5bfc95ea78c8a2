"""Next steps that can be pasted into a shell: quoted, and for the workspace that the user named."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

# At the start of a step, or within its prose after a backtick or a colon. `init` and `demo` need no workspace.
_COMMAND = re.compile(
    r"(^|`|: )(lakeward (?:(?:backup|catalog|schema|dataset|flags|flip|ledger|model|move|source) [a-z]+"
    r"|doctor|status|plan|apply|build|run|verify|maintain))(?![\w.-])"
)


def lakeward(*words: object) -> str:
    """Return a command as a shell takes it."""
    return shlex.join(["lakeward", *(str(word) for word in words)])


def with_home(steps: Sequence[str], home: Path | None) -> list[str]:
    """Return the steps with `--home` after each command that lacks it, if the user gave one.

    The option stands before the arguments, since words may follow the command.
    """
    if home is None:
        return list(steps)
    # A relative one means another directory after a `cd`.
    moved = any(step.startswith("cd ") for step in steps)
    place = shlex.quote(str(home.expanduser().absolute() if moved else home))
    return [
        step if " --home" in step else _COMMAND.sub(lambda found: f"{found[1]}{found[2]} --home {place}", step)
        for step in steps
    ]


def given_home(arguments: Sequence[str]) -> Path | None:
    """Return what `--home` says in arguments that may be wrong otherwise."""
    found = None
    for index, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument.startswith("--home="):
            found = argument.partition("=")[2]
        elif argument == "--home" and index + 1 < len(arguments):
            found = arguments[index + 1]
    return Path(found) if found else None
