"""`lakeward maintain`: what it prints, what a dry run leaves alone, and what repeating does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import lakeward
from support.commands import Run


@pytest.fixture
def history(opened: lakeward.Workspace, place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two versions are kept of a dataset that has five, and an old file that nothing names lies in its directory."""
    monkeypatch.setenv("LAKEWARD_RETENTION__VERSIONS", "2")
    dataset = opened.create_dataset("a.b.c", {"id": "long"}, arm="iceberg")
    for number in range(5):
        dataset.write([{"id": number}], mode="replace")
    stray = Path(dataset.locate()["iceberg"]["location"].removeprefix("file://")) / "data" / "stray.parquet"
    stray.write_bytes(b"x" * 1_500_000)
    os.utime(stray, (time.time() - 7200, time.time() - 7200))
    return stray


def test_it_says_what_goes_and_repeating_finds_nothing(run: Run, history: Path) -> None:
    planned = run("maintain", "--dry-run")
    assert planned.code == 0 and history.exists()
    assert f"data file {history} of a.b.c" in planned.out
    assert "would be removed: 3 versions\n" in planned.out
    assert "would be removed: 1 data file, 1.5 MB\n" in planned.out and "Next: lakeward maintain" in planned.out
    done = run("maintain", "a.b.c", "--output", "json").document
    assert not history.exists()
    assert done["totals"]["version"] == {"count": 3, "bytes": 0}
    assert done["totals"]["data file"] == {"count": 1, "bytes": 1_500_000} and done["bytes"] == 1_500_000
    assert (done["failures"], done["next_steps"]) == ([], [])
    again = run("maintain")
    assert (again.code, again.out) == (0, "nothing to do\n")
    gone = run("dataset", "preview", "a.b.c", "--version", "1")
    assert gone.code == 2 and "has expired" in (gone.err)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--older-than", "soon"], "'soon' is not a duration"),
        (["--older-than", "5s"], "leases last 60 s"),
        (["a.b.d"], "unknown dataset a.b.d"),
    ],
)
def test_it_refuses_what_can_not_be_meant(run: Run, history: Path, arguments: list[str], says: str) -> None:
    ran = run("maintain", *arguments)
    assert ran.code == 2 and says in ran.err and history.exists()


def test_scratch_files_of_queries_whose_process_died_go(run: Run, opened: lakeward.Workspace) -> None:
    home = opened.settings.values.home
    assert home is not None
    scratch = home / "scratch"
    scratch.mkdir(exist_ok=True)
    old, young = scratch / "duckdb_temp_storage-1.tmp", scratch / "duckdb_temp_storage-2.tmp"
    for path in (old, young):
        path.write_bytes(b"spilled")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    assert "removed: 1 scratch" in run("maintain").out
    assert not old.exists() and young.exists()
