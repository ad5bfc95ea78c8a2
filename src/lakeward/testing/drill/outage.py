"""Takes an embedded Postgres away from all its users, and brings it back."""

from __future__ import annotations

from pathlib import Path

from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.files import ServerFiles
from lakeward.control.embedded.postmaster import stop


class EmbeddedOutage:
    """An embedded server that is the drill's own: nobody else starts or uses it.

    Args:
        directory: its directory.
        cache: where a copy of its programs is, if one was needed.
    """

    def __init__(self, directory: Path, cache: Path) -> None:
        self._directory = directory
        self._cache = cache

    def stop(self) -> None:
        """Stop it under its users: what they have under way is rolled back, their connections are closed."""
        stop(ServerFiles.of(self._directory))

    def start(self) -> None:
        """Start it again, in the same place."""
        # Another use is there all the time, so that giving up this one stops nothing.
        EmbeddedPostgres.acquire(self._directory, self._cache).release()
