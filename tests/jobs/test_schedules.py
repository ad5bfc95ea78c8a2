"""What is queued by time or on change: each time once, by whichever worker; one that was missed once, at start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import SettingsError
from lakeward.jobs.job import SUCCEEDED
from lakeward.jobs.queue import Jobs
from lakeward.jobs.schedules import Schedules, upcoming
from lakeward.jobs.worker import InProcessWorker, Worker
from support.waiting import until

SETTINGS = """
[jobs.schedules.nightly]
cron = "0 3 * * *"
kind = "rehearse"
options = { name = "by night" }
"""
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


class Time:
    """A clock that a test sets."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def at(self, hour: int, day: int = 2) -> datetime:
        self.now = datetime(2026, 3, day, hour, tzinfo=UTC)
        return self.now


@pytest.fixture
def scheduled(database_url: str, warehouse: Path, tmp_path: Path) -> Iterator[Callable[[str], lakeward.Workspace]]:
    """Opens the workspace with settings."""
    opened: list[lakeward.Workspace] = []

    def open_with(text: str) -> lakeward.Workspace:
        path = tmp_path / f"settings{len(opened)}.toml"
        path.write_text(text, encoding="utf-8")
        opened.append(lakeward.open(database_url=database_url, warehouse=warehouse, settings_file=path))
        return opened[-1]

    yield open_with
    with opened[0].database.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM lakeward.job_schedules")
        connection.exec_driver_sql("UPDATE lakeward.procrastinate_jobs SET status = 'cancelled' WHERE status = 'todo'")
    for each in opened:
        each.close()


def test_each_time_once_with_several_workers(scheduled: Callable[[str], lakeward.Workspace]) -> None:
    time = Time(MIDNIGHT)
    workers = [Schedules(Jobs(scheduled(SETTINGS)), time) for _ in range(3)]

    def look() -> list[int]:
        with ThreadPoolExecutor(3) as pool:
            return [job for found in pool.map(lambda each: each.look(), workers) for job in found]

    assert look() == [], "what is new begins with its next time"
    time.at(2)
    assert look() == []
    time.at(3)
    [job] = look()
    assert look() == []
    queue = Jobs(scheduled(""))
    assert (queue.get(job).kind, queue.get(job).added_by) == ("rehearse", "setting nightly")
    assert queue.get(job).principal is None and queue.get(job).options["name"] == "by night"
    queue.cancel(job)
    time.at(3, day=3)
    assert len(look()) == 1


def test_times_that_were_missed_are_made_up_for_once(scheduled: Callable[[str], lakeward.Workspace]) -> None:
    time = Time(MIDNIGHT)
    assert Schedules(Jobs(scheduled(SETTINGS)), time).look() == []
    time.at(12, day=6)
    began = Schedules(Jobs(scheduled(SETTINGS)), time)
    assert len(began.look()) == 1, "five times have passed while nobody looked"
    assert began.look() == []


def test_one_that_was_changed_has_missed_nothing(scheduled: Callable[[str], lakeward.Workspace]) -> None:
    time = Time(MIDNIGHT)
    Schedules(Jobs(scheduled(SETTINGS)), time).look()
    time.at(4)
    later = SETTINGS.replace("0 3", "30 3")
    assert Schedules(Jobs(scheduled(later)), time).look() == []
    zoned = later + "\n[jobs]\ntime_zone = 'Asia/Tokyo'\n"
    assert Schedules(Jobs(scheduled(zoned)), time).look() == []
    time.now = datetime(2026, 3, 2, 18, 30, tzinfo=UTC)
    assert len(Schedules(Jobs(scheduled(zoned)), time).look()) == 1, "half past three in Tokyo"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SETTINGS.replace('cron = "0 3 * * *"', ""), r"nightly.cron \(from .*settings1.toml\): field required"),
        (SETTINGS.replace("rehearse", "rehers"), r"settings1.toml\): unknown kind of job 'rehers'(.|\n)*rehearse"),
        (SETTINGS.replace("name =", "nam ="), r"settings1.toml\): unknown option of job rehearse 'nam'(.|\n)*name"),
        (SETTINGS.replace("0 3 * * *", "0 33 * * *"), r"nightly.cron \(from .*settings1.toml\): the hour '33'"),
        (SETTINGS.replace("cron =", "crom ="), r"unknown setting jobs.schedules.nightly.crom \(from .*settings1.toml"),
        ("[jobs]\ntime_zone = 'Europe/Berlim'\n", r"no time zone .*Europe/Berlin"),
        ("[jobs]\nwidht = 3\n", r"did you mean jobs.width"),
    ],
)
def test_what_is_wrong_in_the_settings_is_told_with_its_file(
    scheduled: Callable[[str], lakeward.Workspace], text: str, says: str
) -> None:
    scheduled("")
    with pytest.raises(SettingsError, match=says) as raised:
        Schedules(Jobs(scheduled(text)))
    assert raised.value.fields["setting"]


def apply_one(workspace: lakeward.Workspace, folder: Path, schedule: str | None) -> None:
    (folder / "pipelines").mkdir(exist_ok=True)
    (folder / "lakeward.toml").write_text("[project]\nname = 'scheduled'\n", encoding="utf-8")
    line = f"-- schedule: {schedule}\n" if schedule is not None else ""
    header = "-- pipeline: followed\n-- sources: {n: main.raw.n}\n-- output: main.made.followed\n-- strategy: replace\n"
    (folder / "pipelines" / "followed.sql").write_text(f"{header}{line}select id from n", encoding="utf-8")
    workspace.apply(folder)


def test_a_pipeline_is_built_by_its_schedule(workspace: lakeward.Workspace, queue: Jobs, tmp_path: Path) -> None:
    workspace.ensure_dataset(workspace.declare_dataset("main.raw.n", {"id": "long"}))
    apply_one(workspace, tmp_path, "0 6 * * mon")
    time = Time(MIDNIGHT)
    schedules = Schedules(queue, time)
    [(one, at)] = upcoming(schedules, time.now)
    assert (one.name, at) == ("pipeline followed", datetime(2026, 3, 2, 6, tzinfo=UTC))
    assert schedules.look() == []
    time.at(7)
    [job] = schedules.look()
    assert queue.get(job).options["pipelines"] == ["followed"]
    queue.cancel(job)
    apply_one(workspace, tmp_path, None)
    time.at(7, day=9)
    assert schedules.look() == []
    apply_one(workspace, tmp_path, "0 6 * * mon")
    assert schedules.look() == [], "it was not scheduled when that time came"


def test_a_pipeline_is_built_when_something_changes(workspace: lakeward.Workspace, queue: Jobs, tmp_path: Path) -> None:
    numbers = workspace.ensure_dataset(workspace.declare_dataset("main.raw.n", {"id": "long"}))
    apply_one(workspace, tmp_path, "on_change")
    one, other = Schedules(queue), Schedules(queue)
    assert one.look() == [] and one.look_for_changes() == [], "its source was never written"
    numbers.write([{"id": 1}])
    with ThreadPoolExecutor(2) as pool:
        [job] = [job for found in pool.map(Schedules.look_for_changes, (one, other)) for job in found]
    numbers.write([{"id": 2}])
    assert other.look_for_changes() == [job], "it waits already"
    Worker(workspace, once=True).run()
    assert queue.get(job).status == SUCCEEDED
    assert workspace.dataset("main.made.followed").record.row_count == 2
    assert one.look_for_changes() == [] and other.look_for_changes() == []


def test_a_worker_looks_by_itself(workspace: lakeward.Workspace, queue: Jobs, tmp_path: Path) -> None:
    numbers = workspace.ensure_dataset(workspace.declare_dataset("main.raw.n", {"id": "long"}))
    numbers.write([{"id": 1}])
    apply_one(workspace, tmp_path, "on_change")
    with InProcessWorker(workspace):
        until(lambda: workspace.tree.find("main.made.followed") is not None)
        numbers.write([{"id": 3}])
        rows = numbers.record.row_count
        until(lambda: workspace.dataset("main.made.followed").record.row_count == rows)
