"""Measures a piece of work in a process of its own: wall and CPU seconds, and peak memory above what it had before."""

from __future__ import annotations

import gc
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
SAMPLE_SECONDS = 0.005


@dataclass(frozen=True)
class Measured:
    """Wall seconds, the peak of resident memory above the baseline in MB (10^6 bytes), and CPU seconds.

    The CPU is that of this process and, if it was named, of a Postgres server. It can be told beside other work, too.
    """

    seconds: float
    peak_mb: float
    cpu: float = 0.0


def resident() -> int:
    """Return this process's resident memory in bytes, without pages of mapped files."""
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return (int(fields[1]) - int(fields[2])) * PAGE


class Peak:
    """Samples resident memory from a thread while a block runs."""

    def __enter__(self) -> Peak:
        gc.collect()
        self.baseline = self.highest = resident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            self.highest = max(self.highest, resident())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.highest = max(self.highest, resident())

    @property
    def mb(self) -> float:
        """The peak above the baseline, in MB."""
        return (self.highest - self.baseline) / 1e6


def cpu_seconds(server: int | None = None) -> float:
    """Return the CPU seconds that this process has used, and a Postgres server and all that it has started.

    Args:
        server: the process id of the server's first process; None: there is none to count.
    """
    return time.process_time() + (0.0 if server is None else _of_tree(server))


def _of_tree(parent: int) -> float:
    total = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            _, _, rest = (entry / "stat").read_text(encoding="utf-8").rpartition(")")
        except OSError:
            continue  # it ended in this moment; its parent counts it then
        fields = rest.split()
        if int(entry.name) == parent:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == parent:
            total += sum(map(int, fields[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def without_telemetry() -> dict[str, str]:
    """Return an environment in which tools that others made tell nobody that they are measured."""
    return {
        "PATH": os.environ["PATH"],
        # Without one, they would keep what they keep where the bench is run.
        "HOME": tempfile.gettempdir(),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "SLING_DISABLE_TELEMETRY": "TRUE",
    }


def timed(work: Callable[[], object], server: int | None = None) -> Measured:
    """Run `work` here and measure it.

    Args:
        work: what is measured.
        server: see `cpu_seconds`.
    """
    with Peak() as peak:
        started, used = time.perf_counter(), cpu_seconds(server)
        work()
        seconds = time.perf_counter() - started
    return Measured(seconds, peak.mb, cpu_seconds(server) - used)


def in_fresh_process(work: Callable[..., dict[str, object]], *arguments: object) -> dict[str, object]:
    """Run a case in a new process, so that one case's memory is not another's baseline."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(work, arguments)


def table(title: str, rows: list[dict[str, object]]) -> str:
    """Return rows as a Markdown table."""
    names = list(rows[0])
    lines = [f"### {title}", "", "| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(_shown(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _shown(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
