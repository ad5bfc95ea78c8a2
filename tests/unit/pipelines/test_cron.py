"""When a pipeline is to be built: what its files may say, and where it is kept and shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from lakeward.errors import SpecError
from lakeward.pipelines.cron import check_cron
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
