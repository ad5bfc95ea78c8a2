"""`lakeward job` and `lakeward worker`: work is queued, run, waited for and looked at from the command line."""

from __future__ import annotations

import lakeward
from lakeward.jobs.worker import InProcessWorker
from support.commands import Run


def test_a_job_from_its_adding_to_its_log(run: Run, opened: lakeward.Workspace) -> None:
    added = run("job", "add", "maintain", "older-than=7200", "--output", "json")
    assert added.code == 0 and added.document["status"] == "waiting"
    assert added.document["options"] == {"datasets": [], "older_than": 7200.0}
    number = str(added.document["id"])
    assert added.document["next_steps"] == [f"lakeward job log {number} --follow", f"lakeward job cancel {number}"]
    assert "maintain" in run("job", "list", "--status", "waiting").out
    assert run("worker", "--once").out == "no job waits\n"
    shown = run("job", "show", number)
    assert shown.code == 0 and "succeeded" in shown.out and '"removed"' in shown.out
    log = run("job", "log", number, "--output", "json").document["log"]
    assert [each["line"] for each in log][-1] == "maintain is done"
    assert run("job", "list", "--status", "waiting").out == "no jobs\n"
    again = run("job", "retry", number)
    assert again.code == 6 and "has succeeded" in again.err


def test_waiting_for_one_ends_with_its_exit_code(run: Run, opened: lakeward.Workspace) -> None:
    opened.create_dataset("main.a.b", {"id": "long"})
    with InProcessWorker(opened):
        done = run("job", "add", "recover", "--wait")
        assert done.code == 0 and "recover is done" in done.out
        failed = run("job", "add", "flip", "dataset=main.a.b", "do=revert", "--wait", "--output", "json")
    assert failed.code == 2
    assert failed.document["status"] == "failed" and failed.document["error"]["error"] == "UsageError"
    assert any(each["level"] == "error" for each in failed.document["log"])


def test_cancel_and_what_is_there(run: Run, opened: lakeward.Workspace) -> None:
    number = str(run("job", "add", "recover", "--at", "2030-01-01T00:00+00:00", "--output", "json").document["id"])
    assert "not before 2030-01-01" in run("job", "show", number).out
    assert "cancelled" in run("job", "cancel", number).out
    assert "waiting" in run("job", "retry", number).out
    kinds = run("job", "kinds", "--output", "json").document["kinds"]
    assert [each["kind"] for each in kinds] == ["build", "flip", "maintain", "move", "recheck", "recover", "sync"]
    assert kinds[-1]["options"]["source"]["required"]
    assert run("job", "schedules").out == "nothing is scheduled\n"


def test_what_is_mistyped_is_told(run: Run, opened: lakeward.Workspace) -> None:
    for words, says in (
        (["add", "biuld"], "did you mean build"),
        (["add", "build", "full"], "NAME=VALUE"),
        (["add", "build", "ful=yes"], "did you mean full"),
        (["add", "recover", "--at", "tomorrow"], "is no time"),
        (["add", "recover", "--at", "2030-01-01T00:00"], "no time zone"),
        (["show", "99"], "there is no job 99"),
        (["list", "--status", "done"], "unknown status of a job"),
    ):
        wrong = run("job", *words)
        assert wrong.code == 2 and says in wrong.err, wrong
    wrong = run("worker", "--once", "--queues", "biuld")
    assert wrong.code == 2 and "did you mean build" in wrong.err
