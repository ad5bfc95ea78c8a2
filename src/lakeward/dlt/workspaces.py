"""The workspaces that destinations of this process write to: opened when first needed, and closed with the process.

dlt makes a client for every file that it loads. Each would otherwise start and stop the workspace's Postgres.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping

from lakeward.wiring.opening import open_workspace
from lakeward.wiring.workspace import Workspace

_opened: dict[tuple[tuple[str, str | None], ...], Workspace] = {}
_lock = threading.Lock()


def workspace_of(options: Mapping[str, str | None]) -> Workspace:
    """Return the workspace of these options, opened if no destination has yet.

    Args:
        options: `home`, `database_url` and `warehouse` as `lakeward.open` takes them.

    Raises:
        SettingsError, HomeNotWritable, DatabaseUnavailable: see `lakeward.open`.
    """
    key = tuple(sorted(options.items()))
    with _lock:
        if key not in _opened:
            _opened[key] = open_workspace(**options)  # type: ignore[arg-type]
        return _opened[key]


@atexit.register
def close_all() -> None:
    """Close them; those that are needed later are opened again."""
    with _lock:
        while _opened:
            _opened.popitem()[1].close()
