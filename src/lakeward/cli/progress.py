"""Shows how far long work is: one line that changes on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TextIO

Style = Literal["live", "lines", "none"]

_LIVE_SECONDS = 0.1
_LINE_SECONDS = 3.0


class Progress:
    """Told of rows as they pass; prints at its own pace.

    Args:
        stream: where to; not standard output, which holds results.
        style: `live`, `lines` or `none`.
        clock: seconds that only go up.
    """

    def __init__(self, stream: TextIO, style: Style, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._style = style
        self._clock = clock
        self._what = ""
        self._started = self._shown = clock()
        self._on_line = False

    def __call__(self, what: str, rows: int, total: int | None = None) -> None:
        """Tell that `rows` of `total` (None: unknown) are done."""
        if self._style == "none":
            return
        now = self._clock()
        if what != self._what:
            self.close()
            self._what, self._started = what, now
            # A live line shows at once what begins; lines wait, so that short work prints none.
            self._shown = now if self._style == "lines" else 0.0
        if now - self._shown < (_LIVE_SECONDS if self._style == "live" else _LINE_SECONDS):
            return
        self._shown = now
        text = _line(what, rows, total, now - self._started)
        self._stream.write(f"\r\x1b[2K{text}" if self._style == "live" else f"{text}\n")
        self._stream.flush()
        self._on_line = self._style == "live"

    def close(self) -> None:
        """Take the live line away."""
        if self._on_line:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._on_line = False


def _line(what: str, rows: int, total: int | None, seconds: float) -> str:
    if not rows:
        return f"{what} … {duration(seconds)}"
    rate = rows / seconds if seconds > 0 else 0.0
    parts = [f"{rows:,} rows"]
    if total:
        parts = [f"{rows:,} of {total:,} rows ({100 * rows // total} %)"]
    parts += [f"{rate:,.0f} rows/s", duration(seconds)]
    if total and rate:
        parts.append(f"ETA {duration(max(0.0, (total - rows) / rate))}")
    return f"{what}: {', '.join(parts)}"


def duration(seconds: float) -> str:
    """Return seconds as people read them: `0:07`, `1:02:03`."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
