"""Readers that stop in the middle of an answer: what a server holds for 45 of them, and after they have left."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from measure import table
from rows import COLUMNS, million, repeated

import lakeward

STALLED = 45
SETTLE_SECONDS = 3
LEFT_SECONDS = 10


@contextmanager
def _serving(home: Path) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "lakeward.cli.app", "serve", "--port", "0", "--no-worker", "--output", "json"]
    environment = {**os.environ, "LAKEWARD_HOME": str(home), "LAKEWARD_LOGS__LEVEL": "warning"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            yield json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")["url"], server.pid
        finally:
            server.send_signal(signal.SIGTERM)


def _resident_mb(process: int) -> float:
    lines = (line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return next(int(line[1]) * 1.024 for line in lines if line[0] == "VmRSS:") / 1000


def _stalled(url: str, process: int, name: str) -> dict[str, object]:
    """Let readers of a million rows take the first bytes and no more, and return what the server holds for them."""
    before = _resident_mb(process)
    where = urlsplit(url)
    request = f"GET /api/v1/datasets/{name}/rows?format=arrow HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n"
    held_by = 0
    with ExitStack() as undo:
        for _ in range(STALLED):
            reader = undo.enter_context(socket.create_connection((where.hostname, where.port), timeout=60))
            reader.sendall(request.encode())
            answer = reader.recv(12)
            # Whoever finds no room is told to come again.
            assert answer in (b"HTTP/1.1 200", b"HTTP/1.1 503"), answer
            held_by += answer.endswith(b"200")
        time.sleep(SETTLE_SECONDS)
        held = _resident_mb(process)
    time.sleep(LEFT_SECONDS)
    after = _resident_mb(process)
    each = (held - before) / held_by
    of_them = {f"of {STALLED} stalled readers": name, "got rows": held_by}
    return {**of_them, "MB before": before, "MB": held, "MB each": each, "MB after": after}


def main() -> str:
    """Run the benchmark and return its table."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch:
        home = Path(scratch) / "home"
        with lakeward.open(home) as workspace:
            for arm in ("iceberg", "postgres"):
                dataset = workspace.create_dataset(f"bench.stalled.{arm}", COLUMNS, arm=arm)
                dataset.write(repeated(million(), 1), mode="replace")
                with _serving(home) as (url, process):
                    lines.append(_stalled(url, process, dataset.name))
    return table("Readers that take no more than the first bytes of 1M rows × 10 as Arrow", lines)


if __name__ == "__main__":
    print(main())
