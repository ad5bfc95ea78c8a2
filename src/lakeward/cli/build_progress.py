"""Shows how far builds are, with a line for each pipeline that is under way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakeward.cli.session import Session
from lakeward.happenings import Happening, context, listen

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


AFTER_ROWS = {"write.audit": "checking", "write.decide": "committing", "write.publish": "publishing"}
"""What is done when all rows are computed, by the steps of a write. Without a word of it a build would look stuck."""


class _AfterRows:
    """Shows what becomes of a build whose rows are all there."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def begun(self, happening: Happening) -> None:
        """Show it in the place of the rows."""
        facts = context()
        if happening.name in AFTER_ROWS and facts.get("pipeline"):
            self._session.progress(f"{AFTER_ROWS[happening.name]} {facts['dataset']}", 0)

    def ended(self, happening: Happening) -> None:
        """Leave it to what comes next."""


@contextmanager
def shown_to_the_end(session: Session) -> Iterator[None]:
    """Within the block, show also what is done when all rows of a build are computed."""
    end = listen(_AfterRows(session))
    try:
        yield
    finally:
        end()
