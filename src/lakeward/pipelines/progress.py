"""How far builds are: what is told to whoever waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is: rows that were computed for one output so far; and whether the build has ended, well or not.

    Several pipelines can be under way at a time.
    """

    pipeline: str
    dataset: str
    rows: int
    ended: bool = False


Progress = Callable[[BuildProgress], None]


class SharedProgress:
    """Passes on what builds in several threads tell: one thing at a time, and the end of each build.

    Args:
        progress: whom to tell.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._last: dict[str, BuildProgress] = {}

    def __call__(self, progress: BuildProgress) -> None:
        """Pass it on."""
        with self._lock:
            self._last[progress.pipeline] = progress
            self._progress(progress)

    def end(self, pipeline: str) -> None:
        """Tell that the build of a pipeline has ended, if anything was told of it."""
        with self._lock:
            last = self._last.pop(pipeline, None)
            if last is not None:
                self._progress(replace(last, ended=True))
