"""Where the log of a process is set up: for commands, the server and workers alike. Its lines go to standard error.

Two forms. `text` is for people: a line has what went on around it at its end. `json` is for programs: each line is an
object with `time`, `level`, `logger`, `message`, what went on around it (`request`, `principal`, `dataset`, `build`,
`job` …) and, for a request that was answered, `method`, `path`, `status`, `seconds`. No line has a secret in it: each
is cleaned as a whole, tracebacks and names of others included.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from lakeward.happenings import context
from lakeward.redaction import Redactor

FORMS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")

AROUND = ("request", "principal", "job", "pipeline", "source", "dataset", "build", "stage")
"""What a line tells of what goes on around it, in this order: facts of `lakeward.happenings`."""

FACTS = "facts"
"""The attribute of a record that has facts of its own: `log.info("…", extra={FACTS: {"status": 200}})`."""

OURS = "lakeward"


def set_up(
    redactor: Redactor,
    *,
    form: str = "text",
    level: str = "warning",
    everything: bool = False,
    timed: bool = False,
    stream: TextIO | None = None,
) -> None:
    """Let the log of this process go to standard error. May be called again: the last call counts.

    Args:
        redactor: what may not be in it.
        form: one of `FORMS`.
        level: one of `LEVELS`, from which on lines of ours are logged; those of libraries are from `warning` on.
        everything: log all of what libraries say, too.
        timed: begin a line of text with the time.
        stream: where to; None: standard error.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Json(redactor) if form == "json" else _Text(redactor, timed=timed))
    root = logging.getLogger()
    for other in [each for each in root.handlers if isinstance(each.formatter, _Clean)]:
        root.removeHandler(other)
    root.addHandler(handler)
    ours = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(logging.DEBUG if everything else max(ours, logging.WARNING))
    logging.getLogger(OURS).setLevel(ours)


class _Clean(logging.Formatter):
    """Formats a record, tracebacks included, without secrets."""

    def __init__(self, redactor: Redactor, form: str) -> None:
        super().__init__(form)
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor(super().format(record))


class _Text(_Clean):
    def __init__(self, redactor: Redactor, *, timed: bool) -> None:
        super().__init__(redactor, f"{'%(asctime)s ' if timed else ''}%(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _moment(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        around = " ".join(f"{name}={_word(self._redactor(str(value)))}" for name, value in _around().items())
        line = super().formatMessage(record)
        return f"{line} [{around}]" if around else line


class _Json(_Clean):
    def __init__(self, redactor: Redactor) -> None:
        super().__init__(redactor, "%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redactor(record.getMessage()),
            **_around(),
            **getattr(record, FACTS, {}),
        }
        if record.exc_info:
            line["error"] = self._redactor(self.formatException(record.exc_info))
        # A secret with a quote in it is written another way in JSON: each text is cleaned before, and the line after.
        cleaned = {name: self._redactor(value) if isinstance(value, str) else value for name, value in line.items()}
        return self._redactor(json.dumps(cleaned, ensure_ascii=False, default=str))


def _around() -> dict[str, object]:
    facts = context()
    return {name: facts[name] for name in AROUND if facts.get(name)}


def _word(text: str) -> str:
    return text if text.isprintable() and not set(' "[]=') & set(text) else json.dumps(text, ensure_ascii=True)


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
