"""Builds again whenever something that pipelines read has a new version: `lakeward build --watch`.

It asks the ledger every few seconds, by one cheap query. Postgres could tell by NOTIFY, but a session that listens
can't be had from a pooler in transaction mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lakeward.clock import Clock
from lakeward.errors import ConflictError, DatabaseUnavailable, LakewardError
from lakeward.pipelines.schedule import Builds
from lakeward.storage.requests import BuildResult

SECONDS = 2.0
Outcome = Sequence[BuildResult] | LakewardError


@dataclass
class Watch:
    """Builds when the state of the ledger changes.

    Args:
        state: what the ledger says of all that could make a build necessary; is compared.
        build: builds what has something to do.
        clock: waits.
        seconds: between two looks at the ledger.
    """

    state: Callable[[], object]
    build: Callable[[], Builds]
    clock: Clock
    seconds: float = SECONDS

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the results of each build that did something, and its error if it had one, without end.

        A failed build is tried again when something changes. If somebody else held a dataset, or Postgres was not
        there, nothing needs to change: it is tried again at the next look.
        """
        seen: object = None
        while True:
            try:
                # Looked at before the build: what is written while it runs is built the next time.
                found = self.state()
                if found != seen:
                    seen = found
                    builds = self.build()
                    results = [result for result in builds.results.values() if not result.up_to_date]
                    if results:
                        yield results
                    if builds.failure is not None:
                        raise builds.failure
            except (ConflictError, DatabaseUnavailable) as error:
                seen = None
                yield error
            except LakewardError as error:
                yield error
            self.clock.sleep(self.seconds)
