"""A request with an idempotency key is killed, and repeated with it: its rows are there once, however far it got."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from lakeward.storage import protocol
from support.crashes import Driver, content, unclean

Make = Callable[[str], lakeward.Dataset]

ROWS = [(number, "once") for number in range(3)]


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
@pytest.mark.parametrize("point", ["intent:opened", "prepare", "decide", "decide:committed"])
def test_a_killed_request_is_repeated(ws: lakeward.Workspace, driver: Driver, make: Make, arm: str, point: str) -> None:
    dataset = make(arm)
    request = {"write": [[dataset.name, "append", 0, 3, "once"]], "key": "r1"}
    assert driver.run(**request, fault=["crash", point, 1]).killed()
    stands = point == protocol.COMMITTED_FROM
    assert content(dataset) == (ROWS if stands else [])
    for repeated in (stands, True, True):
        answer = driver.run(**request).answer()
        assert answer["repeated"] == [repeated], answer
        assert content(dataset) == ROWS
    driver.run(recover=True).answer()
    assert unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize("point", ["prepare:committed", "decide", "decide:committed"])
def test_a_build_of_two_arms_is_repeated(ws: lakeward.Workspace, driver: Driver, make: Make, point: str) -> None:
    datasets = [make("postgres"), make("iceberg")]
    request = {"write": [[each.name, "append", 0, 3, "once"] for each in datasets], "key": "load 7"}
    assert driver.run(**request, fault=["crash", point, 1]).killed()
    stands = point == protocol.COMMITTED_FROM
    for repeated in (stands, True):
        assert driver.run(**request).answer()["repeated"] == [repeated, repeated]
        assert [content(dataset) for dataset in datasets] == [ROWS, ROWS]
    driver.run(recover=True).answer()
    assert unclean(ws, [dataset.name for dataset in datasets]) == []


@pytest.mark.parametrize("point", ["decide", "decide:committed"])
def test_a_request_without_rows_remembers_its_key(
    ws: lakeward.Workspace, driver: Driver, make: Make, point: str
) -> None:
    dataset = make("postgres")
    dataset.write([{"id": number, "note": "once"} for number in range(3)])
    request = {"write": [[dataset.name, "upsert", 0, 3, "once"]], "key": "nothing new"}
    assert driver.run(**request, fault=["crash", point, 1]).killed()
    dataset.write([{"id": 0, "note": "changed"}], mode="upsert")
    # It would undo what was written since, had it not been there before.
    answer = driver.run(**request).answer()
    assert answer["repeated"] == [point == "decide:committed"]
    assert ("changed" in dict(content(dataset)).values()) == (point == "decide:committed")
    assert unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_of_four_processes_at_once_one_writes(ws: lakeward.Workspace, driver: Driver, make: Make, arm: str) -> None:
    dataset = make(arm)
    request = {"write": [[dataset.name, "append", 0, 3, "once"]], "key": "at once"}
    answers = [case.answer() for case in driver.run_together([request] * 4)]
    assert sorted(each["repeated"] for each in answers) == [[False], [True], [True], [True]], answers
    assert {tuple(each["versions"]) for each in answers} == {(dataset.version,)}
    assert content(dataset) == ROWS
    assert unclean(ws, [dataset.name]) == []


def test_one_that_was_stopped_before_it_decided_gets_the_result_of_the_other(
    ws: lakeward.Workspace, driver: Driver, make: Make
) -> None:
    dataset = make("postgres")
    request = {"write": [[dataset.name, "append", 0, 3, "once"]], "key": "woken"}
    # Its fence is gone when it wakes up, so it can't decide; what it is told to do leads to the other one's result.
    stopped = driver.run(**request, fault=["pause", "decide", 1])
    assert stopped.event == "stopped"
    with ws.database.driver() as connection:
        connection.execute("UPDATE lakeward.leases SET lease_until = clock_timestamp() - interval '1 second'")
        connection.commit()
    assert driver.run(**request).answer()["repeated"] == [False]
    assert stopped.wake()["error"] == "LeaseLost"
    assert driver.run(**request).answer()["repeated"] == [True]
    assert content(dataset) == ROWS
