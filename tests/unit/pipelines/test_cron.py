"""When a pipeline is to be built: what its files may say, and where it is kept and shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

import lakeward
from lakeward.errors import SpecError
from lakeward.pipelines.cron import check_cron, last_tick, next_tick
from lakeward.pipelines.fingerprint import fingerprint
from lakeward.pipelines.project import Project

YAML = """\
pipeline: one
nodes: {{rows: {{transform: "select 1 as n"}}}}
outputs: [{{dataset: main.m.one, from: rows, strategy: replace}}]
schedule: {}
"""
SQL = "-- pipeline: one\n-- sources: {{}}\n-- output: a.b.c\n-- strategy: replace\n-- schedule: {}\nselect 1 as n\n"


@pytest.mark.parametrize(
    "text",
    ["0 6 * * *", "*/15 0-23/2 1,15 * mon-FRI", "59 23 31 12 7", "0 0 29 feb *", "0 0 30 2 mon", "* * * jan,jul sun"],
)
def test_five_fields_of_cron(text: str) -> None:
    assert check_cron(f" {text.replace(' ', '  ')} ") == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it has 0 fields, and should have five: minute, hour, day of the month, month, day of the week"),
        ("0 6 * *", "it has 4 fields"),
        ("0 0 6 * * *", "it has 6 fields"),
        ("@daily", "it has 1 fields"),
        ("60 6 * * *", "the minute '60' is not within 0 to 59"),
        ("0 24 * * *", "the hour '24' is not within 0 to 23"),
        ("0 6 0 * *", "the day of the month '0' is not within 1 to 31"),
        ("0 6 * mai *", "the month 'mai' is not within 1 to 12, or jan, feb"),
        ("0 6 * * 8", "the day of the week '8' is not within 0 to 7, or sun, mon"),
        ("0 18-6 * * *", "the hour '18-6' is a range from 18 down to 6"),
        ("*/0 6 * * *", "has a step that is not of the form"),
        ("5/15 6 * * *", "has a step that is not of the form"),
        ("0, 6 * * *", "the minute '0,' is no `[*]`, number, range"),
        ("-1 6 * * *", "the minute '-1' is no"),
        ("\u0661 6 * * *", "the minute '\u0661' is no"),
        ("0 6 L * *", "the day of the month 'L' is not within"),
        ("0 0 31 2,4 *", "no month of it has such a day"),
    ],
)
def test_what_cron_would_not_run_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check_cron(text)


@pytest.mark.parametrize(
    ("schedule", "says"), [('"0 25 * * *"', "the hour '25'"), ("6", "should be text"), ("", "text")]
)
@pytest.mark.parametrize(("name", "form", "line"), [("a_yml", YAML, 4), ("a_sql", SQL, 5)])
def test_a_wrong_schedule_is_told_with_its_line(
    project: Callable[..., Project], name: str, form: str, line: int, schedule: str, says: str
) -> None:
    with pytest.raises(SpecError, match=rf"a\.\w+:{line}: 'schedule' is .*{says}") as raised:
        project(**{name: form.format(schedule)})
    assert 'schedule: "0 6 * * *"' in str(raised.value.next_step)


def test_a_schedule_is_stored_and_shown_and_changes_no_build(
    workspace: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    def scheduled(text: str) -> Project:
        return project(one_yml=YAML.format(text))

    plan = workspace.pipelines.apply(scheduled('"0 6  * * *"'))
    assert plan.to_json()["pipelines"][0]["schedule"] == "0 6 * * *"  # type: ignore[index]
    assert [*plan.lines()][1] == "└── + one, schedule 0 6 * * * (new)"
    applied = workspace.pipelines.applied()["one"]
    assert applied.pipeline is not None
    assert applied.pipeline.spec.schedule == "0 6 * * *"
    workspace.build()
    other = scheduled("30 6 * * *")
    assert fingerprint(other.pipelines[0]) == applied.fingerprint
    assert [(each.change, each.reason) for each in workspace.pipelines.apply(other).pipelines] == [
        ("changed", "schedule changed")
    ]
    assert workspace.build()[0].up_to_date
    (same,) = project(one_sql=SQL.format("30 6 * * *")).pipelines
    assert same.spec.schedule == "30 6 * * *"


@pytest.mark.parametrize(
    ("text", "now", "last", "after"),
    [
        ("0 6 * * *", "2026-03-02T06:00", "2026-03-02T06:00", "2026-03-03T06:00"),
        ("0 6 * * *", "2026-03-02T05:59", "2026-03-01T06:00", "2026-03-02T06:00"),
        ("*/15 * * * *", "2026-03-02T10:44", "2026-03-02T10:30", "2026-03-02T10:45"),
        ("0 0 1 jan *", "2026-03-02T00:00", "2026-01-01T00:00", "2027-01-01T00:00"),
        ("0 0 29 feb *", "2026-03-02T00:00", "2024-02-29T00:00", "2028-02-29T00:00"),
        ("0 0 29 feb *", "2103-03-02T00:00", "2096-02-29T00:00", "2104-02-29T00:00"),
        ("0 12 * * sun", "2026-03-02T00:00", "2026-03-01T12:00", "2026-03-08T12:00"),
        ("0 12 * * 7", "2026-03-02T00:00", "2026-03-01T12:00", "2026-03-08T12:00"),
        ("0 0 13 * fri", "2026-03-12T00:00", "2026-03-06T00:00", "2026-03-13T00:00"),
        ("0 0 13 * fri", "2026-04-12T00:00", "2026-04-10T00:00", "2026-04-13T00:00"),
    ],
)
def test_the_times_of_a_schedule(text: str, now: str, last: str, after: str) -> None:
    at, zone = datetime.fromisoformat(now).replace(tzinfo=UTC), ZoneInfo("UTC")
    assert last_tick(text, at, zone) == datetime.fromisoformat(last).replace(tzinfo=UTC)
    assert next_tick(text, at, zone) == datetime.fromisoformat(after).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "now", "after"),
    [
        # Clocks go forward from 2 to 3 on 29 March, and back from 3 to 2 on 25 October.
        ("30 2 * * *", "2026-03-29T00:00+00:00", "2026-03-29T01:30+00:00"),
        ("30 2 * * *", "2026-03-29T02:00+00:00", "2026-03-30T00:30+00:00"),
        ("30 2 * * *", "2026-10-25T00:00+00:00", "2026-10-25T00:30+00:00"),
        ("30 2 * * *", "2026-10-25T00:31+00:00", "2026-10-26T01:30+00:00"),
        ("30 * * * *", "2026-10-25T00:31+00:00", "2026-10-25T01:30+00:00"),
    ],
)
def test_where_clocks_change(text: str, now: str, after: str) -> None:
    assert next_tick(text, datetime.fromisoformat(now), ZoneInfo("Europe/Berlin")) == datetime.fromisoformat(after)


def test_one_that_never_comes_has_no_time() -> None:
    now, zone = datetime(2026, 3, 2, tzinfo=UTC), ZoneInfo("UTC")
    assert last_tick("0 0 30 2 *", now, zone) is None
    assert next_tick("0 0 30 2 *", now, zone) is None


@pytest.mark.parametrize("text", ["on_change", '"on_change"'])
def test_on_change(project: Callable[..., Project], text: str) -> None:
    assert project(one_yml=YAML.format(text)).pipelines[0].spec.schedule == "on_change"
