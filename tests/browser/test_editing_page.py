"""A manual table in a browser: cells are typed into, the change is looked at, applied, and taken back."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from playwright.sync_api import expect

import lakeward
from browser.conftest import Seen

Look = Callable[..., Seen]


@pytest.mark.parametrize("key", [["code"], []], ids=["keyed", "without a key"])
def test_an_edit_with_its_change_and_undo(look: Look, seen_workspace: lakeward.Workspace, key: list[str]) -> None:
    name = f"main.seen.rates_{len(key)}"
    rates = seen_workspace.create_dataset(name, {"code": "string", "rate": "decimal(6,2)", "note": "string"}, key)
    before = [
        {"code": "a", "rate": Decimal("1.50"), "note": 'two\r\nlines "quoted"'},
        {"code": "b", "rate": Decimal("2.50"), "note": ""},
        {"code": "c", "rate": None, "note": None},
    ]
    rates.write(before)
    page = look(f"/datasets/{name}").page
    page.get_by_role("link", name="Edit rows").click()
    page.get_by_label("rate of row 2", exact=True).fill("2.75")
    page.get_by_label("Remove row 3").check()
    page.get_by_label("code of new row 1").fill("d")
    page.get_by_label("note of new row 1").fill('""')
    page.get_by_role("button", name="Review changes").click()
    expect(page.locator("tr.update del")).to_have_text("2.50")
    expect(page.locator("tr.update ins")).to_have_text("2.75")
    expect(page.locator("tr.insert")).to_have_count(1)
    expect(page.locator("tr.delete")).to_have_count(1)
    assert rates.version == 1
    page.get_by_role("button", name="Back to the cells").click()
    expect(page.get_by_label("rate of row 2", exact=True)).to_have_value("2.75")
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".message.done")).to_contain_text("version 2")
    found = {row["code"]: row for row in rates.to_arrow().to_pylist()}
    # What was not typed into is as it was, to the ends of its lines.
    assert (found["a"]["note"], str(found["b"]["rate"]), found["b"]["note"]) == (before[0]["note"], "2.75", "")
    assert set(found) == {"a", "b", "d"} and found["d"] == {"code": "d", "rate": None, "note": ""}
    assert rates.history()[0].author

    page.goto(f"/edit/{name}")
    page.get_by_role("link", name="Undo the last edit").click()
    page.get_by_role("button", name="Take it back").click()
    expect(page.locator(".message.done")).to_contain_text("version 3")
    assert {row["code"]: row["note"] for row in rates.to_arrow().to_pylist()} == {
        "a": before[0]["note"],
        "b": "",
        "c": None,
    }


def test_what_can_not_be_stored_stays_in_its_cell(look: Look, seen_workspace: lakeward.Workspace) -> None:
    rates = seen_workspace.create_dataset("main.seen.refused", {"code": "string", "rate": "decimal(6,2)"}, ["code"])
    rates.write([{"code": "a", "rate": Decimal(1)}])
    seen = look("/edit/main.seen.refused")
    page = seen.page
    page.get_by_label("rate of row 1", exact=True).fill("much")
    page.get_by_role("button", name="Review changes").click()
    expect(page.locator(".message.error")).to_contain_text("'much' is not a decimal")
    expect(page.get_by_label("rate of row 1", exact=True)).to_have_value("much")
    page.get_by_label("rate of row 1", exact=True).fill("2")
    # Somebody else is quicker.
    rates.write([{"code": "a", "rate": Decimal(3)}], mode="upsert")
    page.get_by_role("button", name="Review changes").click()
    expect(page.locator(".message.error")).to_contain_text("rate='3.00'")
    assert rates.version == 2
    seen.refused()
