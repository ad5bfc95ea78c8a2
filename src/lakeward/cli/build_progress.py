"""Shows how far builds are, with a line for each pipeline that is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakeward.cli.session import Session

if TYPE_CHECKING:
    from lakeward.pipelines.progress import BuildProgress


def build_progress(session: Session) -> Callable[[BuildProgress], None]:
    """Return what shows how far each build is."""

    def told(progress: BuildProgress) -> None:
        if progress.ended:
            session.progress.end(progress.pipeline)
        else:
            session.progress.beside(progress.pipeline, f"building {progress.dataset}", progress.rows)

    return told
