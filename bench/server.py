"""The HTTP API: a million rows as Arrow, against the facade's own read in this process, and memory meanwhile.

The client is `http.client` of Python, which adds little of its own. httpx parses every 64 KiB in Python, for
longer than the server takes to send them; what it takes is told beside it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

import httpx
import pyarrow as pa
from measure import table
from rows import COLUMNS, million, repeated

import lakeward

TURNS = 5
NAME = "bench.main.orders"


class _Parts:
    """What Arrow reads an answer of httpx from as it comes."""

    def __init__(self, answer: httpx.Response) -> None:
        self._parts = answer.iter_raw()
        self._left = b""
        self.closed = False

    def read(self, size: int) -> bytes:
        parts, found = [self._left], len(self._left)
        while found < size and (part := next(self._parts, b"")):
            parts.append(part)
            found += len(part)
        joined = b"".join(parts)
        self._left = joined[size:]
        return joined[:size]


def _over_http(url: str) -> int:
    with urlopen(f"{url}?format=arrow") as answer, pa.ipc.open_stream(answer) as reader:
        return sum(batch.num_rows for batch in reader)


def _over_httpx(url: str) -> int:
    with httpx.stream("GET", url, params={"format": "arrow"}, timeout=None) as answer:
        with pa.ipc.open_stream(pa.PythonFile(_Parts(answer), mode="r")) as reader:
            return sum(batch.num_rows for batch in reader)


def _seconds(read: object) -> float:
    started = time.perf_counter()
    assert read() == 1_000_000  # type: ignore[operator]
    return time.perf_counter() - started


def _peak_mb(process: int) -> float:
    [line] = [each for each in Path(f"/proc/{process}/status").read_text().splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) / 1000


def main() -> str:
    """Run the benchmark and return its table."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        for arm in ("iceberg", "postgres"):
            dataset = workspace.create_dataset(f"{NAME}_{arm}", COLUMNS, arm=arm)
            dataset.write(repeated(million(), 1), mode="replace")
        command = [sys.executable, "-m", "lakeward.cli.app", "serve", "--port", "0", "--output", "json"]
        environment = {**os.environ, "LAKEWARD_HOME": str(Path(scratch) / "home")}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
            assert server.stdout is not None
            document = "".join(iter(server.stdout.readline, "}\n")) + "}"
            url = json.loads(document)["url"]
            for arm in ("iceberg", "postgres"):
                dataset = workspace.dataset(f"{NAME}_{arm}")
                rows = f"{url}/api/v1/datasets/{dataset.name}/rows"
                own, http, by_httpx = [], [], []
                for _ in range(TURNS):
                    own.append(_seconds(lambda read=dataset.read: sum(batch.num_rows for batch in read())))
                    http.append(_seconds(lambda url=rows: _over_http(url)))
                    by_httpx.append(_seconds(lambda url=rows: _over_httpx(url)))
                lines.append(
                    {
                        "1M rows × 10 as Arrow": arm,
                        "facade s": min(own),
                        "HTTP s": min(http),
                        "speed (≥ 0.70)": min(own) / min(http),
                        "with httpx s": min(by_httpx),
                        "server's peak MB": _peak_mb(server.pid),
                    }
                )
            server.send_signal(signal.SIGTERM)
    return table("The HTTP API", lines)


if __name__ == "__main__":
    print(main())
