"""A dataset in a browser: its rows by pages and by a filter, as they were, what changed, its charts and graph."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

import lakeward
from browser.conftest import Seen

Look = Callable[..., Seen]
ORDERS = "/datasets/main.seen.orders"


def test_rows_by_pages_and_by_a_filter(look: Look, orders: lakeward.Dataset) -> None:
    seen = look(ORDERS)
    page = seen.page
    rows = page.locator("#rows tbody tr")
    expect(rows).to_have_count(50)
    expect(page.locator("#rows")).to_contain_text("121 rows in all")
    first = rows.first.locator("td").first
    expect(first).to_have_text("1")
    page.get_by_role("link", name="Next").click()
    expect(page).to_have_url(re.compile("trail=-"))
    expect(first).to_have_text("51")
    page.get_by_role("link", name="Next").click()
    expect(rows).to_have_count(21)
    page.get_by_role("link", name="Previous").click()
    expect(rows).to_have_count(50)
    page.get_by_role("link", name="Previous").click()
    expect(first).to_have_text("1")

    page.get_by_label("Only rows where").fill("id between 5 and 7")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(3)
    page.get_by_label("Only rows where").fill("no such column = 1")
    page.keyboard.press("Enter")
    expect(page.locator("#said .message.error")).to_be_visible()
    expect(rows).to_have_count(3)
    expect(page.get_by_label("Only rows where")).to_have_value("no such column = 1")
    seen.refused()


def test_time_travel_and_what_changed(look: Look, orders: lakeward.Dataset) -> None:
    page = look(f"{ORDERS}?tab=versions").page
    page.get_by_role("link", name="Rows of version 1").click()
    expect(page.locator(".band")).to_contain_text("As it was at version 1")
    expect(page.locator("#rows")).to_contain_text("120 rows in all")
    expect(page.locator("#rows")).not_to_contain_text("seven")
    page.get_by_role("combobox", name="Version").select_option("2")
    expect(page.locator("#rows")).to_contain_text("seven")
    page.get_by_role("link", name="Changes", exact=True).click()
    changed = page.locator("#changes tr.update")
    expect(changed).to_have_count(1)
    expect(changed.locator("del")).to_have_text("note 7")
    expect(changed.locator("ins")).to_have_text("seven")


def test_charts_lineage_and_how_it_is_opened(look: Look, orders: lakeward.Dataset) -> None:
    quality = look(f"{ORDERS}?tab=quality").page
    expect(quality.get_by_role("region", name="amount >= 0").first).to_contain_text("1")
    expect(quality.locator("[data-chart] canvas").first).to_be_visible()
    opened = look(f"{ORDERS}?tab=open").page
    expect(opened.locator("main")).to_contain_text("StaticTable.from_metadata")
    expect(opened.locator("main")).to_contain_text("iceberg_scan")


def test_a_name_of_any_text(look: Look, seen_workspace: lakeward.Workspace) -> None:
    name = "main.\"a.b/c?d#e\".'Ünïcode <b>&amp; %41'"
    seen_workspace.create_dataset(name, {"ключ <i>": "string"}).write([{"ключ <i>": "<script>alert(1)</script>"}])
    page = look("/datasets").page
    page.get_by_label("Find datasets by name").fill("ünïcode")
    expect(page.locator("#standing tbody tr")).to_have_count(1)
    page.locator("#standing a.name").click()
    expect(page.locator("#rows td")).to_have_text("<script>alert(1)</script>")
    for tab in ("Schema", "Versions", "Changes", "Quality", "Lineage", "Open elsewhere"):
        page.get_by_role("link", name=tab, exact=True).click()
        expect(page.locator(".tabs [aria-current]")).to_have_text(tab)
        expect(page.locator(".message.error")).to_have_count(0)
