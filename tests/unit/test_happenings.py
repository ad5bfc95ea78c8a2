"""What goes on is told to whoever listens, with what it is a part of, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from threading import Thread

import pytest

from lakeward.happenings import Happening, context, current, happening, listen, told


class Heard:
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.begun_names: list[str] = []
        self.all: list[Happening] = []

    def begun(self, happening: Happening) -> None:
        self.begun_names.append(happening.name)

    def ended(self, happening: Happening) -> None:
        self.all.append(happening)


@pytest.fixture
def heard() -> Iterator[Heard]:
    listener = Heard()
    end = listen(listener)
    yield listener
    end()


def test_what_is_inside_ends_first_and_knows_what_is_around(heard: Heard) -> None:
    with happening("build", pipeline="daily"):
        with happening("write", dataset="a.b.c"):
            assert context() == {"pipeline": "daily", "dataset": "a.b.c"}
    write, build = heard.all
    assert heard.begun_names == ["build", "write"]
    assert write.around is build and build.around is None
    assert build.seconds >= write.seconds > 0
    assert current() is None


def test_the_innermost_fact_counts() -> None:
    with happening("write", dataset="a.b.c, a.b.d", build="1"), happening("write.prepare", dataset="a.b.d"):
        assert context() == {"dataset": "a.b.d", "build": "1"}


def test_an_error_is_told_and_goes_on(heard: Heard) -> None:
    with pytest.raises(KeyboardInterrupt), happening("sync"):
        raise KeyboardInterrupt
    assert isinstance(heard.all[0].error, KeyboardInterrupt)


def test_a_call_is_told_of_with_its_result(heard: Heard) -> None:
    @told("write", lambda name, more=0: {"dataset": name})
    def write(name: str, more: int = 0) -> int:
        """Write."""
        return len(name) + more

    assert write("abc", more=1) == 4
    assert (heard.all[0].facts, heard.all[0].result, write.__doc__) == ({"dataset": "abc"}, 4, "Write.")


def test_who_stops_listening_hears_the_end_of_what_it_heard_the_beginning_of() -> None:
    listener = Heard()
    end = listen(listener)
    with happening("sync"):
        end()
        with happening("write"):
            pass
    assert [each.name for each in listener.all] == ["sync"]


def test_a_thread_that_gets_the_context_is_inside() -> None:
    found: list[dict[str, object]] = []
    with happening("build", pipeline="daily"):
        thread = Thread(target=copy_context().run, args=(lambda: found.append(context()),))
        thread.start()
        thread.join()
    assert found == [{"pipeline": "daily"}]
