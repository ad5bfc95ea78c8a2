"""Progress on a terminal, in a log, and nowhere."""

from __future__ import annotations

import io
import threading

from lakeward.cli.progress import Progress, duration


def shown(style: str, steps: int, seconds: float) -> str:
    now = [0.0]
    stream = io.StringIO()
    progress = Progress(stream, style, clock=lambda: now[0])  # type: ignore[arg-type]
    for step in range(steps):
        progress("importing a.b.c", step * 100, 1000)
        now[0] += seconds
    progress.close()
    return stream.getvalue()


def test_lines_come_every_few_seconds() -> None:
    assert shown("lines", 11, 0.2) == ""
    lines = shown("lines", 11, 1.0).splitlines()
    assert lines == [
        "importing a.b.c: 300 of 1,000 rows (30 %), 100 rows/s, 0:03, ETA 0:07",
        "importing a.b.c: 600 of 1,000 rows (60 %), 100 rows/s, 0:06, ETA 0:04",
        "importing a.b.c: 900 of 1,000 rows (90 %), 100 rows/s, 0:09, ETA 0:01",
    ]


def test_a_live_line_goes_away() -> None:
    text = shown("live", 3, 1.0)
    assert "\n" not in text and text.endswith("\r\x1b[2K") and "200 of 1,000 rows" in text


def test_several_pieces_of_work_have_a_line_each_until_they_end() -> None:
    now = [0.0]
    stream = io.StringIO()
    progress = Progress(stream, "live", clock=lambda: now[0])
    for rows in (1, 2):
        for name in ("one", "two"):
            now[0] += 1.0
            progress.beside(name, f"building a.b.{name}", rows)
    progress.end("one")
    progress.close()
    *_, both, left = stream.getvalue().split("\x1b[1A\r\x1b[J")
    assert both == "building a.b.one: 2 rows, 1 rows/s, 0:03\nbuilding a.b.two: 2 rows, 1 rows/s, 0:02"
    assert left.split("\r\x1b[2K") == ["building a.b.two: 2 rows, 1 rows/s, 0:02", ""]


def test_none_says_nothing() -> None:
    assert shown("none", 20, 10.0) == ""


def test_duration() -> None:
    assert [duration(seconds) for seconds in (7.9, 65, 3723)] == ["0:07", "1:05", "1:02:03"]


def test_time_is_seen_to_pass_while_nothing_is_told() -> None:
    now = [0.0]
    stream = io.StringIO()
    progress = Progress(stream, "lines", clock=lambda: now[0])
    told = progress.of("copying a.b.c", 50)
    told(50)
    for _ in range(2):
        now[0] += 3.5
        progress.tick()
    progress.close()
    now[0] += 9
    progress.tick()
    assert stream.getvalue().splitlines() == [
        "copying a.b.c: 50 of 50 rows (100 %), 14 rows/s, 0:03",
        "copying a.b.c: 50 of 50 rows (100 %), 7 rows/s, 0:07",
    ]


def test_its_thread_ends() -> None:
    progress = Progress(io.StringIO(), "lines")
    # One of an earlier test may still be on its way out.
    before = set(threading.enumerate())
    progress.of("copying a.b.c")
    [thread] = [each for each in set(threading.enumerate()) - before if each.name == "lakeward-progress"]
    progress.close()
    thread.join(timeout=5)
    assert not thread.is_alive()
