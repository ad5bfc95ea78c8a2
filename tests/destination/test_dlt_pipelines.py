"""State, refreshes, settings, and pipelines at once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import dlt
import pytest
from dlt.common.runtime import anon_tracker
from dlt.pipeline.exceptions import PipelineStepFailed

import lakeward
from destination.conftest import ARMS, Made, Rows
from lakeward.dlt import load
from lakeward.errors import InvalidName
from support.dlt_loads import events

WITHOUT = """
import sys
sys.modules["dlt"] = None
import lakeward
try:
    import lakeward.dlt
except lakeward.errors.SettingsError as error:
    print(error)
"""


def numbers(rows: Rows) -> list[object]:
    return sorted(row["number"] for row in rows)  # type: ignore[type-var]


def test_i02_a_machine_without_dlts_files_goes_on_where_the_last_one_ended(
    ws: lakeward.Workspace, pipeline: Made, loads_place: Path, rows: Callable[[str, str, str], Rows]
) -> None:
    pipeline("moved", working="here").run(events(2))
    shutil.rmtree(loads_place / "here")
    other = pipeline("moved", working="there")
    other.run(events(3))
    assert numbers(rows("moved", "postgres", "events")) == [0, 1, 2, 3]
    assert other.state["sources"]
    # Who drops the datasets begins anew, and keeps no state of what is gone.
    ws.names("schema").drop("postgres.moved", cascade=True)
    again = pipeline("moved", working="there")
    again.run(events(1))
    assert numbers(rows("moved", "postgres", "events")) == [0, 1]


@pytest.mark.parametrize("arm", ARMS)
def test_a_refresh_empties_tables_in_the_commit_of_its_rows(
    ws: lakeward.Workspace, pipeline: Made, rows: Callable[[str, str, str], Rows], arm: str
) -> None:
    target = pipeline("refreshed", arm)
    target.run(events(3))
    before = ws.dataset(f"{arm}.refreshed.events").version
    pipeline("refreshed", arm).run(events(1), refresh="drop_data")
    assert numbers(rows("refreshed", arm, "events")) == [0, 1]
    assert len(rows("refreshed", arm, "events__parts")) == 1
    pipeline("refreshed", arm).run(events(0), refresh="drop_sources")
    assert numbers(rows("refreshed", arm, "events")) == [0]
    assert rows("refreshed", arm, "events__parts") == []
    old = ws.dataset(f"{arm}.refreshed.events").to_arrow(version=before)
    assert sorted(old["number"].to_pylist()) == [0, 1, 2, 3]


def test_pipelines_at_once_into_one_schema_all_arrive(
    ws: lakeward.Workspace, pipeline: Made, rows: Callable[[str, str, str], Rows]
) -> None:
    targets = [pipeline("shared", working=f"shared{number}") for number in range(2)]
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            for each in range(2):
                targets[number].run([{"id": 10 * number + each}], table_name="items")
        except PipelineStepFailed as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, str(errors[0].__cause__)
    assert sorted(row["id"] for row in rows("shared", "postgres", "items")) == [0, 1, 10, 11]  # type: ignore[type-var]
    assert len(rows("shared", "postgres", "_dlt_loads")) == 4


def test_load_brings_what_is_pending_and_what_is_new(
    ws: lakeward.Workspace, loads_place: Path, rows: Callable[[str, str, str], Rows]
) -> None:
    with pytest.raises(InvalidName):
        load(ws, events(0), "one_level")
    first = load(ws, events(1), "postgres.loaded", pipelines_dir=loads_place / "own")
    assert first.rows == {"events": 2, "events__parts": 1} and len(first.load_ids) == 1
    bad = dlt.resource([{"number": "a\x00b"}], name="events")
    with pytest.raises(PipelineStepFailed, match="NUL"):
        load(ws, bad, "postgres.other", pipelines_dir=loads_place / "own")
    named = load(ws, dlt.resource([{"number": 1}], name="ok"), "postgres.Any Name", pipelines_dir=loads_place / "own")
    assert named.rows == {"ok": 1} and len(rows("Any Name", "postgres", "ok")) == 1
    again = load(ws, events(1), "postgres.loaded", pipelines_dir=loads_place / "own")
    assert again.rows == {} and again.load_ids == ()
    assert numbers(rows("loaded", "postgres", "events")) == [0, 1]


def test_without_dlt_its_room_says_what_to_install() -> None:
    told = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert "pip install 'lakeward[dlt]'" in told.stdout


def test_nothing_is_sent_anywhere() -> None:
    assert anon_tracker._ANON_TRACKER_ENDPOINT is None
