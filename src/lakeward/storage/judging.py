"""The port of what judges versions before they are decided, by what their datasets are expected to be, whoever writes.

What is expected is a matter of pipelines, which know storage; so storage knows only that something may look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lakeward.storage.requests import BuildResult, Output


class Judgement(Protocol):
    """Looks at the outputs of one build."""

    @property
    def outputs(self) -> list[Output]:
        """The outputs, so that they are looked at before they are decided."""
        ...

    def told(self, result: BuildResult) -> BuildResult:
        """Return the result of the build with what was found, and stopped nothing, as warnings."""
        ...


class Judging(Protocol):
    """Begins to look at a build."""

    def of(self, outputs: Sequence[Output], pipeline: str | None) -> Judgement:
        """Return what looks at these outputs.

        Args:
            outputs: all those of a build.
            pipeline: the one that is built, if any.
        """
        ...
