"""Shows how far long work is: one line that changes on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal, TextIO

Style = Literal["live", "lines", "none"]

_LIVE_SECONDS = 0.1
_LINE_SECONDS = 3.0
_TICK_SECONDS = 1.0
_NO_RATE_BEFORE = 0.5


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
        self._what, self._rows, self._unit = "", 0, "rows"
        self._total: int | None = None
        self._started = self._shown = clock()
        self._on_line = False
        # Signals end a command between any two steps, and what ends it may print: a lock that can be taken twice.
        self._lock = threading.RLock()
        self._stop = threading.Event()

    def __call__(self, what: str, rows: int, total: int | None = None, unit: str = "rows") -> None:
        """Tell that `rows` of `total` (None: unknown) are done; `unit` is what they are, if not rows."""
        if self._style == "none":
            return
        with self._lock:
            if what != self._what:
                self.close()
                self._what, self._started = what, self._clock()
                # A live line shows at once what begins; lines wait, so that short work prints none.
                self._shown = self._started - (0.0 if self._style == "lines" else _LIVE_SECONDS)
                self._stop = threading.Event()
                threading.Thread(target=self._run, args=(self._stop,), name="lakeward-progress", daemon=True).start()
            self._rows, self._total, self._unit = rows, total, unit
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
            if not self._what or now - self._shown < due:
                return
            self._shown = now
            text = _line(self._what, self._rows, self._total, now - self._started, self._unit)
            self._stream.write(f"\r\x1b[2K{text}" if self._style == "live" else f"{text}\n")
            self._stream.flush()
            self._on_line = self._style == "live"

    def close(self) -> None:
        """End the work that is shown, and take the live line away."""
        with self._lock:
            self._stop.set()
            self._what = ""
            if self._on_line:
                self._stream.write("\r\x1b[2K")
                self._stream.flush()
                self._on_line = False

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(_TICK_SECONDS):
            self.tick()


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
