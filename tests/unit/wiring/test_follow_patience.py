"""What a worker that follows a source waits for, and what takes a person."""

from __future__ import annotations

from typing import cast

import pytest

from lakeward.errors import SourceError, SourceRefused
from lakeward.sources.change_log import ChangeLog
from lakeward.wiring.follow_patience import Patience


class Log:
    """One that answers each question about its state by an error."""

    def __init__(self, error: SourceError) -> None:
        self.error = error

    def state(self) -> None:
        """Fail."""
        raise self.error


def patience(error: SourceError) -> Patience:
    return Patience(cast(ChangeLog, Log(error)))


def test_a_source_that_is_away_is_waited_for() -> None:
    away = patience(SourceError("can't be reached"))
    assert [away.delay(SourceError("it ended the stream")) for _ in range(3)] == [0.2, 0.4, 0.8]


@pytest.mark.parametrize("error", [SourceError("it ended the stream"), SourceRefused("no such log")])
def test_one_that_refuses_is_not(error: SourceError) -> None:
    """Whether it says so itself, or when it is asked how it stands: the password was changed, say."""
    with pytest.raises(type(error)):
        patience(SourceRefused("password authentication failed")).delay(error)
