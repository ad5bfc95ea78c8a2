"""A line of the log says what goes on around it, in the form that was asked for, and never a secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from lakeward import logs
from lakeward.happenings import happening
from lakeward.redaction import Redactor

SECRET = 'p"ss w\\rd'
log = logging.getLogger("lakeward.tested")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root, ours = logging.getLogger(), logging.getLogger("lakeward")
    before = root.level, ours.level, list(root.handlers)
    yield io.StringIO()
    root.setLevel(before[0])
    ours.setLevel(before[1])
    root.handlers[:] = before[2]


@pytest.fixture
def redactor() -> Redactor:
    known = Redactor()
    known.add(SECRET)
    return known


def test_a_line_of_json_says_what_goes_on_around_it(stream: io.StringIO, redactor: Redactor) -> None:
    logs.set_up(redactor, form="json", level="info", stream=stream)
    with happening("request", request="r1", principal="ann"), happening("write", dataset='main."a.b".ü', build="b1"):
        log.info("done in %d steps", 3, extra={logs.FACTS: {"status": 200}})
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "lakeward.tested",
        "message": "done in 3 steps",
        "request": "r1",
        "principal": "ann",
        "dataset": 'main."a.b".ü',
        "build": "b1",
        "status": 200,
    }


def test_a_line_of_text_says_it_too_and_stays_one_line(stream: io.StringIO, redactor: Redactor) -> None:
    logs.set_up(redactor, level="info", timed=True, stream=stream)
    with happening("write", dataset='main.s."odd\n]name"'):
        log.info("done")
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(r'INFO lakeward.tested: done [dataset="main.s.\"odd\n]name\""]')


@pytest.mark.parametrize("form", logs.FORMS)
def test_no_line_has_a_secret(form: str, stream: io.StringIO, redactor: Redactor) -> None:
    logs.set_up(redactor, form=form, level="debug", stream=stream)
    with happening("write", dataset=SECRET):
        try:
            raise ValueError(SECRET)
        except ValueError:
            log.exception("it said %s", SECRET, extra={logs.FACTS: {"path": SECRET}})
    text = stream.getvalue()
    assert "ValueError" in text and "***" in text
    assert not any(form in text for form in (SECRET, json.dumps(SECRET)[1:-1], repr(SECRET)[1:-1]))


def test_the_last_call_counts_and_libraries_are_kept_short(stream: io.StringIO, redactor: Redactor) -> None:
    logs.set_up(redactor, level="debug", stream=io.StringIO())
    logs.set_up(redactor, level="info", stream=stream)
    log.info("ours")
    log.debug("too much")
    logging.getLogger("somebody.else").info("theirs")
    assert "ours" in stream.getvalue() and "too much" not in stream.getvalue() and "theirs" not in stream.getvalue()
