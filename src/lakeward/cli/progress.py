"""Shows how far long work is: a line that changes on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TextIO

Style = Literal["live", "lines", "none"]

_LIVE_SECONDS = 0.1
_LINE_SECONDS = 3.0
_TICK_SECONDS = 1.0
_NO_RATE_BEFORE = 0.5
_NO_WIDTH = 200
"""Where a terminal does not tell how wide it is: what is longer than a line can't be written over."""


@dataclass
class _Work:
    """One piece of work that is under way: what it is, how far, since when, and when it was last shown."""

    what: str
    started: float
    shown: float
    rows: int = 0
    total: int | None = None
    unit: str = "rows"


class Progress:
    """Told of rows as they pass; prints at its own pace, also while nothing is told, so that time is seen to pass.

    Args:
        stream: where to; not standard output, which holds results.
        style: `live`, `lines` or `none`.
        clock: seconds that only go up.
    """

    def __init__(self, stream: TextIO, style: Style, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._style = style
        self._clock = clock
        self._works: dict[str, _Work] = {}
        self._on_screen = 0
        # Signals end a command between any two steps, and what ends it may print: a lock that can be taken twice.
        self._lock = threading.RLock()
        self._stop = threading.Event()

    @property
    def live(self) -> bool:
        """Whether it is a line on a terminal, that changes."""
        return self._style == "live"

    def __call__(self, what: str, rows: int, total: int | None = None, unit: str = "rows") -> None:
        """Tell that `rows` of `total` (None: unknown) are done; `unit` is what they are, if not rows.

        Other work than before takes its place.
        """
        with self._lock:
            if all(work.what != what for work in self._works.values()):
                self.close()
            self.beside("", what, rows, total, unit)

    def beside(self, name: str, what: str, rows: int, total: int | None = None, unit: str = "rows") -> None:
        """Tell the same of one of several pieces of work that are under way; each has a name until it ends."""
        if self._style == "none":
            return
        with self._lock:
            work = self._works.get(name)
            if work is None or work.what != what:
                work = self._works[name] = self._begun(what)
            work.rows, work.total, work.unit = rows, total, unit
            self.tick()

    def of(self, what: str, total: int | None = None) -> Callable[[int], None]:
        """Begin one piece of work, and return what is told its rows."""
        self(what, 0, total)
        return lambda rows: self(what, rows, total)

    def tick(self) -> None:
        """Show what is known, if it is time to."""
        with self._lock:
            now = self._clock()
            due = _LIVE_SECONDS if self._style == "live" else _LINE_SECONDS
            lines = []
            for work in self._works.values():
                if now - work.shown >= due:
                    work.shown = now
                    lines.append(_line(work.what, work.rows, work.total, now - work.started, work.unit))
            if lines and self._style == "live":
                self._redraw()
            elif lines:
                self._write("".join(f"{line}\n" for line in lines))

    def end(self, name: str) -> None:
        """End one of several pieces of work."""
        with self._lock:
            if self._works.pop(name, None) is not None and self._on_screen:
                self._redraw()
            if not self._works:
                self._stop.set()

    def close(self) -> None:
        """End all the work that is shown, and take the live lines away."""
        with self._lock:
            self._stop.set()
            self._works.clear()
            if self._on_screen:
                self._redraw()

    def _begun(self, what: str) -> _Work:
        now = self._clock()
        if not self._works:
            self._stop = threading.Event()
            threading.Thread(target=self._run, args=(self._stop,), name="lakeward-progress", daemon=True).start()
        # A live line shows at once what begins; lines wait, so that short work prints none.
        return _Work(what, now, now - (0.0 if self._style == "lines" else _LIVE_SECONDS))

    def _redraw(self) -> None:
        """Write the live lines over those that are on the screen."""
        up = f"\x1b[{self._on_screen - 1}A\r\x1b[J" if self._on_screen > 1 else "\r\x1b[2K"
        now, width = self._clock(), _width(self._stream)
        lines = [
            _line(work.what, work.rows, work.total, now - work.started, work.unit)[: width - 1]
            for work in self._works.values()
        ]
        self._write(up + "\n".join(lines))
        self._on_screen = len(lines)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(_TICK_SECONDS):
            self.tick()


def _width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _NO_WIDTH
    except (OSError, ValueError):
        return shutil.get_terminal_size((_NO_WIDTH, 0)).columns


def _line(what: str, rows: int, total: int | None, seconds: float, unit: str = "rows") -> str:
    if not rows:
        return f"{what} … {duration(seconds)}"
    parts = [f"{rows:,} {unit}"]
    if total:
        parts = [f"{rows:,} of {total:,} {unit} ({100 * rows // total} %)"]
    rate = rows / seconds if seconds >= _NO_RATE_BEFORE else 0.0
    if rate:
        parts.append(f"{rate:,.0f} {unit}/s")
    parts.append(duration(seconds))
    if total and rate and rows < total:
        parts.append(f"ETA {duration((total - rows) / rate)}")
    return f"{what}: {', '.join(parts)}"


def duration(seconds: float) -> str:
    """Return seconds as people read them: `0:07`, `1:02:03`."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
