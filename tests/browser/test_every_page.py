"""What holds for every page: it fits on a phone, can be listened to, goes by keyboard, and without scripts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

import lakeward
from browser.conftest import PHONE, Seen
from lakeward.server.web.site import all_places

Look = Callable[..., Seen]

TABS = ("rows", "schema", "versions", "changes", "quality", "lineage", "open")
PATHS = [
    *(each.href for each in all_places()),
    *(f"/datasets/main.seen.orders?tab={tab}" for tab in TABS),
    "/edit/main.seen.orders",
    "/login",
]

FAULTS = """() => {
  const faults = [];
  const labelled = (each) => (each.labels && each.labels.length) || each.getAttribute("aria-label");
  const named = (each) => labelled(each) || each.title || each.textContent.trim();
  const width = document.documentElement.scrollWidth;
  if (width > innerWidth) faults.push(`wider than the screen: ${width}`);
  if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");
  if (document.querySelectorAll("main").length !== 1) faults.push("not one main");
  for (const each of document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a"))
    if (!named(each)) faults.push(`without a name: ${each.outerHTML}`);
  for (const each of document.querySelectorAll("img:not([alt])")) faults.push(`without alt: ${each.outerHTML}`);
  for (const each of document.querySelectorAll("table"))
    if (!each.caption || !each.querySelector("th[scope]")) faults.push("a table without caption or heads");
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  for (const each of ids) if (ids.indexOf(each) !== ids.lastIndexOf(each)) faults.push(`twice: #${each}`);
  return faults;
}"""

CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (each) => {
    for (; each; each = each.parentElement) {
      const c = parse(getComputedStyle(each).backgroundColor);
      if (c.length === 3 || (c.length === 4 && c[3] === 1)) return c;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const each of document.querySelectorAll("body *")) {
    const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !each.checkVisibility() || each.closest("[disabled], .off, .unseen, .skip, noscript, option")) continue;
    const [a, b] = [light(parse(getComputedStyle(each).color)), light(behind(each))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const what = `${each.tagName}.${each.className} ${each.textContent.trim().slice(0, 30)}`;
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${what}`);
  }
  return [...new Set(faint)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_on_a_phone_and_can_be_read(look: Look, orders: lakeward.Dataset, scheme: str) -> None:
    page = look(PATHS[0], size=PHONE, scheme=scheme).page
    found = {}
    for path in PATHS:
        page.goto(path)
        found[path] = [*page.evaluate(FAULTS), *page.evaluate(CONTRAST)]
    assert not any(found.values()), {path: faults for path, faults in found.items() if faults}


def focused(page: Page) -> str:
    text: str = page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id")
    return text


def test_by_keyboard_alone(look: Look, orders: lakeward.Dataset) -> None:
    page = look("/datasets").page
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to content"
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert focused(page) == "Overview"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    page.get_by_label("Find datasets by name").focus()
    page.keyboard.type("ordersx")
    expect(page.locator("#standing")).to_contain_text("No dataset is like that")
    page.keyboard.press("Backspace")
    expect(page.locator("#standing tbody tr")).to_have_count(1)
    page.locator("#standing .scroll").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("orders")


def test_the_menu_of_a_phone(look: Look) -> None:
    page = look("/", size=PHONE).page
    expect(page.get_by_role("link", name="Datasets", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_role("link", name="Datasets", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Datasets", exact=True)).to_be_hidden()


def test_colours_are_those_of_the_system_until_others_are_chosen(look: Look) -> None:
    page = look("/", scheme="dark").page
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(paper)
    page.get_by_text("Light", exact=True).click()
    light = page.evaluate(paper)
    assert light != dark
    page.reload()
    assert page.evaluate(paper) == light
    page.get_by_text("Auto", exact=True).click()
    assert page.evaluate(paper) == dark


def test_without_scripts(look: Look, orders: lakeward.Dataset) -> None:
    page = look("/datasets/main.seen.orders", scripts=False).page
    page.get_by_label("Only rows where").fill("id = 7")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#rows tbody tr")).to_have_count(1)
    page.goto("/sql")
    page.get_by_label("Query").fill("select count(*) as n from main.seen.orders")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#result td")).to_have_text("121")


def test_sql(look: Look, orders: lakeward.Dataset) -> None:
    page = look("/sql").page
    page.get_by_label("Query").fill("select id, note from main.seen.orders order by id")
    page.keyboard.press("Control+Enter")
    rows = page.locator("#result tbody tr:visible")
    expect(rows).to_have_count(100)
    page.get_by_role("button", name="Next").click()
    expect(rows).to_have_count(21)
    with page.expect_download() as downloading:
        page.get_by_role("button", name="CSV").click()
    assert downloading.value.suggested_filename == "result.csv"
    assert downloading.value.path().read_text(encoding="utf-8").count("\n") == 122
    page.get_by_label("Query").fill("select * from read_csv('/etc/passwd')")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result .message.error")).to_be_visible()
