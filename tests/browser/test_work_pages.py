"""A flip by its buttons, and a build as it goes on, in a browser. A worker beside the server does what is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import lakeward
from browser.conftest import Seen
from lakeward.jobs.worker import InProcessWorker

Look = Callable[..., Seen]

PIPELINE = """
pipeline: seen by buttons
nodes:
  orders: {source: main.buttons.orders}
  kept: {transform: "select id, amount from orders where amount >= 10"}
outputs:
  - {dataset: main.buttons.kept, from: kept, strategy: replace}
"""


@pytest.fixture(scope="module", autouse=True)
def worker(seen_workspace: lakeward.Workspace) -> Iterator[None]:
    """Does what is asked for."""
    with InProcessWorker(seen_workspace):
        yield


@pytest.fixture(scope="module")
def flipped(seen_workspace: lakeward.Workspace) -> lakeward.Dataset:
    """What is flipped."""
    made = seen_workspace.create_dataset("main.buttons.orders", {"id": "long", "amount": "decimal(18,4)"}, ["id"])
    made.write([{"id": each, "amount": Decimal(each)} for each in range(50)])
    return made


def test_a_flip_by_its_buttons(look: Look, flipped: lakeward.Dataset, seen_workspace: lakeward.Workspace) -> None:
    """Each stage is done by its button, after the dry run was read; the dataset's history and the list tell of it."""
    seen = look("/flips")
    page = seen.page
    page.get_by_label("Dataset").fill(flipped.name)
    page.get_by_role("button", name="Look at its flip").click()
    _do(page, "Start", "read all 50 rows of version 1 from the postgres arm")
    _offered(page, "Switch")
    expect(page.locator(".lights li.done")).to_have_count(4)
    assert flipped.arm == "postgres"
    _do(page, "Switch", "set mode iceberg_dual")
    _offered(page, "Revert")
    assert seen_workspace.dataset(flipped.name).arm == "iceberg"
    _do(page, "Verify", "compute the digest of all 50 rows")
    _offered(page, "Revert")
    _do(page, "Revert", "set mode dual")
    _offered(page, "Switch")
    assert seen_workspace.dataset(flipped.name).arm == "postgres"
    _do(page, "Switch", "set mode iceberg_dual")
    _offered(page, "Complete")
    page.get_by_role("link", name="Complete").click()
    page.get_by_label("To confirm").fill("main.buttons")
    page.get_by_role("button", name="Complete now").click()
    expect(page.get_by_role("alert")).to_contain_text("the name that was typed is not main.buttons.orders")
    page.go_back()
    page.get_by_label("To confirm").fill(flipped.name)
    page.get_by_role("button", name="Complete now").click()
    expect(page.get_by_text("the last flip, to Iceberg, was completed")).to_be_visible()
    assert seen_workspace.flip(flipped.name).status().outcome == "completed"
    page.goto("/datasets/main.buttons.orders?tab=versions")
    for writer in ("flip.switch", "flip.revert"):
        expect(page.get_by_text(writer).first).to_be_visible()
    seen.refused()
    page.goto("/flips")
    expect(page.get_by_role("row", name=re.compile("main.buttons.orders.*completed"))).to_be_visible()


def test_a_build_is_followed_and_a_change_is_planned(
    look: Look, flipped: lakeward.Dataset, seen_workspace: lakeward.Workspace, tmp_path: Path
) -> None:
    """Its rows are there when the page says so, without a reload; the graph is drawn; a change is seen before it is."""
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "lakeward.toml").touch()
    (tmp_path / "pipelines" / "one.yml").write_text(PIPELINE, encoding="utf-8")
    applied = seen_workspace.pipelines.applied()
    project = seen_workspace.pipelines.load(tmp_path)
    others = [each.pipeline for each in applied.values() if each.pipeline is not None]
    seen_workspace.pipelines.apply(replace(project, pipelines=(*project.pipelines, *others)))
    page = look("/pipelines/seen%20by%20buttons").page
    expect(page.locator("[data-graph][data-drawn] canvas").first).to_be_visible()
    page.get_by_role("button", name="Build", exact=True).click()
    outputs = page.get_by_role("region", name="Outputs", exact=True).last
    expect(outputs.get_by_role("row", name=re.compile("kept"))).to_contain_text("40")
    assert seen_workspace.dataset("main.buttons.kept").row_count == 40
    page.get_by_role("link", name="Change it").click()
    text = page.get_by_label("The pipeline, as YAML")
    text.fill(text.input_value().replace("amount >= 10", "amount >= 45"))
    page.get_by_role("button", name="Plan").click()
    expect(page.get_by_text("changes something")).to_be_visible()
    expect(page.locator(".diff .added")).to_contain_text("amount >= 45")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("Pipeline seen by buttons is applied.")).to_be_visible()
    page.get_by_role("button", name="Build", exact=True).click()
    expect(outputs.get_by_role("row", name=re.compile("kept"))).to_contain_text("5")
    page.goto("/jobs")
    expect(page.get_by_role("row", name=re.compile("build.*seen by buttons.*succeeded")).first).to_be_visible()
    page.get_by_role("row", name=re.compile("build.*seen by buttons")).first.get_by_role("link").first.click()
    expect(page.get_by_text("main.buttons.kept version").first).to_be_visible()


def _do(page: Page, label: str, literally: str) -> None:
    """Ask for the dry run of something, read it, and do it."""
    page.get_by_role("link", name=label, exact=True).click()
    expect(page.locator("#ask")).to_contain_text(literally)
    page.get_by_role("button", name=f"{label} now").click()


def _offered(page: Page, label: str) -> None:
    """Wait until the page, which renews itself, offers something."""
    expect(page.get_by_role("link", name=label, exact=True)).to_be_visible()
