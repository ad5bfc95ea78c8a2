"""The web page: the overview and the list with 2,000 datasets, each with a history, as the server makes them."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from measure import table
from starlette.testclient import TestClient

import lakeward
from lakeward.server.app import create_app

DATASETS = 2_000
WRITES = 3
TURNS = 9
PATHS = ("/", "/?q=d199", "/?state=empty", "/datasets", "/datasets?within=bench.s7", "/sql")
HTML = {"Accept": "text/html"}


def main() -> str:
    """Return the table of `make bench`."""
    with tempfile.TemporaryDirectory(prefix="lw-") as home, lakeward.open(Path(home) / "home") as workspace:
        for number in range(DATASETS):
            dataset = workspace.create_dataset(
                f"bench.s{number % 40}.d{number}", {"id": "long", "note": "string"}, ["id"]
            )
            # One of ten was never written.
            for turn in range(WRITES if number % 10 else 0):
                dataset.write([{"id": turn, "note": "x"}])
        app = create_app(workspace, Path(home), page_rows=1000, body_limit=1 << 20)
        with TestClient(app, base_url="http://127.0.0.1", headers=HTML) as client:
            rows = [_measured(client, path) for path in PATHS]
    versions = DATASETS * WRITES * 9 // 10
    return table(f"The web page, with {DATASETS:,} datasets of {versions:,} versions (overview: at most 300 ms)", rows)


def _measured(client: TestClient, path: str) -> dict[str, object]:
    taken = []
    size = 0
    for _ in range(TURNS):
        started = time.perf_counter()
        answer = client.get(path)
        taken.append((time.perf_counter() - started) * 1000)
        assert answer.status_code == 200, answer.text
        size = len(answer.content)
    middle, slowest = round(statistics.median(taken)), round(max(taken))
    return {"page": f"`{path}`", "median ms": middle, "slowest ms": slowest, "kB": size // 1000}


if __name__ == "__main__":
    print(main())
