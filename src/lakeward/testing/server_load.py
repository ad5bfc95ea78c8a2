"""Loads a server of a workspace with readers and writers at once, and sees whether anything fails, is lost or grows.

The clients are threads of this process, on the same machine as the server and Postgres: what they see is how long
requests wait for one another, and not how fast a server alone is.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

WRITTEN = 100
"""So many rows one request brings."""
COLUMNS = {"id": "long", "note": "string", "amount": "decimal(18,4)"}
Ask = Callable[..., object]
READS = {
    "page of 100 rows": "/api/v1/datasets/{}/rows?limit=100",
    "all rows as Arrow": "/api/v1/datasets/{}/rows?format=arrow",
    "history": "/api/v1/datasets/{}/history?most=20",
    "overview page": "/",
}


@dataclass(frozen=True)
class Load:
    """What a load has shown.

    Args:
        seconds: of every request, by its kind.
        written: how many rows were acknowledged, by dataset.
        before_mb, peak_mb, after_mb: the resident memory of the server, in MB.
    """

    seconds: dict[str, list[float]]
    written: dict[str, int]
    before_mb: float
    peak_mb: float
    after_mb: float


@dataclass
class _Seen:
    """What clients saw: seconds by kind of request, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    written: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    lock: threading.Lock = field(default_factory=threading.Lock)


def load(home: Path, datasets: Sequence[str], readers: int, writers: int, seconds: float) -> Load:
    """Serve a workspace, and load the server.

    Args:
        home: of the workspace.
        datasets: names of those that are read from and written to; their columns are `COLUMNS`.
        readers, writers: how many at a time.
        seconds: for how long.

    Raises:
        AssertionError: a request failed.
    """
    seen = _Seen()
    with _served(home) as (address, process), _Memory(process) as memory:
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=_read, args=(address, datasets, until, seen, n)) for n in range(readers)]
        threads += [threading.Thread(target=_write, args=(address, datasets, until, seen, n)) for n in range(writers)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    if seen.errors:
        raise AssertionError(f"{len(seen.errors)} requests failed: {'; '.join(seen.errors[:5])}")
    return Load(dict(seen.seconds), dict(seen.written), memory.before, memory.peak, memory.last)


def _read(address: tuple[str, int], datasets: Sequence[str], until: float, seen: _Seen, number: int) -> None:
    chance = random.Random(number)
    kinds = list(READS.items())
    with _client(address, seen) as ask:
        while time.monotonic() < until:
            kind, path = chance.choice(kinds)
            if ask(kind, "GET", path.format(chance.choice(datasets))) is None:
                return


def _write(address: tuple[str, int], datasets: Sequence[str], until: float, seen: _Seen, number: int) -> None:
    name = datasets[number % len(datasets)]
    with _client(address, seen) as ask:
        while time.monotonic() < until:
            body = json.dumps([{"id": each, "note": "w", "amount": 1.5} for each in range(WRITTEN)])
            headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
            if ask("append of 100 rows", "POST", f"/api/v1/datasets/{name}/rows", body, headers) is None:
                return
            with seen.lock:
                seen.written[name] += WRITTEN


@contextmanager
def _client(address: tuple[str, int], seen: _Seen) -> Iterator[Ask]:
    connection = http.client.HTTPConnection(*address, timeout=120)

    def ask(
        kind: str, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
    ) -> object:
        started = time.perf_counter()
        try:
            connection.request(method, path, body, {"Accept": "text/html" if path == "/" else "*/*", **(headers or {})})
            answer = connection.getresponse()
            found = answer.read()
            failed = f"{answer.status} {found[:200]!r}" if answer.status >= 400 else None
        except (OSError, http.client.HTTPException) as error:
            failed = repr(error)
        with seen.lock:
            if failed is not None:
                seen.errors.append(f"{kind}: {failed}")
                return None
            seen.seconds[kind].append(time.perf_counter() - started)
        return found

    try:
        yield ask
    finally:
        connection.close()


@contextmanager
def _served(home: Path) -> Iterator[tuple[tuple[str, int], int]]:
    command = [sys.executable, "-m", "lakeward.cli.app", "serve", "--port", "0", "--no-worker", "--output", "json"]
    environment = {**os.environ, "LAKEWARD_HOME": str(home)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        document = "".join(iter(server.stdout.readline, "}\n")) + "}"
        url = urlsplit(json.loads(document)["url"])
        try:
            yield (str(url.hostname), int(url.port or 0)), server.pid
        finally:
            server.send_signal(signal.SIGTERM)


class _Memory:
    """Looks at the resident memory of a process while a block runs, in MB."""

    def __init__(self, process: int) -> None:
        self._status = Path(f"/proc/{process}/status")
        self.before = self.peak = self.last = self._now()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _now(self) -> float:
        [line] = [each for each in self._status.read_text().splitlines() if each.startswith("VmRSS")]
        return int(line.split()[1]) / 1000

    def _look(self) -> None:
        while not self._ended.wait(0.2):
            self.last = self._now()
            self.peak = max(self.peak, self.last)

    def __enter__(self) -> _Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
