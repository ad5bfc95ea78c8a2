"""The commands that compare arms, and say what a flip would do."""

from __future__ import annotations

import psycopg
import pytest

import lakeward
from support.commands import Run

NAME = "main.sales.orders"


@pytest.fixture
def orders(opened: lakeward.Workspace) -> lakeward.Dataset:
    made = opened.create_dataset(NAME, {"id": "long", "note": "string"}, ["id"])
    made.write([{"id": number, "note": f"note {number}"} for number in range(5)])
    return made


def damage(workspace: lakeward.Workspace, statement: str) -> None:
    with psycopg.connect(workspace.database.libpq_url, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_a_mirror_is_checked_compared_accepted_and_replaced(
    run: Run, opened: lakeward.Workspace, orders: lakeward.Dataset
) -> None:
    checked = run("flip", "check", NAME)
    assert checked.code == 0, checked.err
    assert "it can be flipped" in checked.out and "lossless" in checked.out
    assert run("flip", "check", NAME, "--output", "json").document["certificate"]["columns"][1]["longest"] == 6
    assert run("flip", "start", NAME, "--until", "mirror").code == 0
    assert "equal" in run("flip", "recheck", "--older-than", "0").out
    damage(opened, 'UPDATE lakeward.dataset_rows SET data = data || \'{"note": "x"}\' WHERE row_index = 3')
    found = run("verify", NAME)
    assert found.code == 4
    assert "id=3: note differs: postgres x, iceberg note 3" in found.err
    assert run("verify", NAME, "--output", "json").document["fields"]["finding"]["rows"] == 1
    rechecked = run("flip", "recheck", "--older-than", "0", "--output", "json")
    assert (rechecked.code, rechecked.document["datasets"][0]["outcome"]) == (4, "differs")
    rule = ("--column", "note", "--reason", "a known slip", "--until", "2999-01-01", "--owner", "sales")
    assert run("flip", "ignore", "add", NAME, *rule).code == 0
    assert "a known slip" in run("flip", "ignore", "list", NAME).out
    accepted = run("verify", NAME)
    assert (accepted.code, "in rows by column: note 1" in accepted.out) == (0, True)
    assert run("flip", "ignore", "remove", NAME, "--column", "note").code == 0
    plan = run("flip", "resync", NAME, "--dry-run")
    assert "remove the copy of main.sales.orders from the iceberg arm" in plan.out
    assert run("flip", "resync", NAME, "--confirm", "another").code == 2
    done = run("flip", "resync", NAME, "--confirm", NAME)
    assert done.code == 0, done.err
    assert "has a new copy" in done.out
    assert run("verify", NAME).code == 0


def test_what_keeps_a_dataset_from_being_flipped_is_named_by_key(
    run: Run, opened: lakeward.Workspace, orders: lakeward.Dataset
) -> None:
    damage(opened, 'UPDATE lakeward.dataset_rows SET data = data || \'{"id": "four"}\' WHERE row_index = 4')
    checked = run("flip", "check", NAME)
    assert checked.code == 3
    assert "id: refused: __row_id=4: 'four' can't be read as long" in checked.out
    started = run("flip", "start", NAME)
    assert started.code == 1 and "can't be flipped to the iceberg arm: column 'id'" in started.err
