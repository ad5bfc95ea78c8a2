"""The page in a real browser, Debian's chromium, over a server of this process: one of both for all tests.

A machine without chromium says so in `test_installed.py`, and runs none of these.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.server.app import create_app
from support.databases import WORKSPACE, drop_database, made_database
from support.serving import serving

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 30_000
expect.set_options(timeout=PATIENCE_MS)
PHONE = (390, 844)
DESK = (1280, 800)

collect_ignore_glob = [] if CHROMIUM else ["test_[!i]*.py"]


@pytest.fixture(scope="session")
def seen_workspace(
    postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[lakeward.Workspace]:
    """The workspace that is looked at."""
    home = tmp_path_factory.mktemp("seen")
    url = made_database(postgres, WORKSPACE)
    with lakeward.open(home, database_url=url, warehouse=home / "warehouse") as opened:
        yield opened
    drop_database(postgres.url, url)


@pytest.fixture(scope="session")
def orders(seen_workspace: lakeward.Workspace) -> lakeward.Dataset:
    """Three versions of 120 rows and more on Iceberg, judged, with a pipeline's output made from them."""
    columns = {"id": "long", "note": "string", "amount": "decimal(18,4)"}
    dataset = seen_workspace.create_dataset("main.seen.orders", columns, ["id"], arm="iceberg")
    dataset.expect(["primary_key", {"row": {"check": "amount >= 0", "on_fail": "warn"}}])
    dataset.write([{"id": each, "note": f"note {each}", "amount": Decimal(each)} for each in range(1, 121)])
    dataset.write([{"id": 7, "note": "seven", "amount": Decimal(7)}], mode="upsert")
    dataset.write([{"id": 121, "note": None, "amount": Decimal(-1)}], mode="upsert")
    return dataset


@pytest.fixture(scope="session")
def url(seen_workspace: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the server is."""
    scratch: Path = tmp_path_factory.mktemp("bodies")
    with serving(create_app(seen_workspace, scratch, page_rows=100, body_limit=8 << 20)) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for a module: as long as it is there, this thread has an event loop that no other test may begin in."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@dataclass
class Seen:
    """What a page asked for and complained of.

    Args:
        page: to look at and act on.
        server: which is looked at.
        requests: the addresses that it asked for.
        complaints: of its console, among them those about its policy, and errors of its scripts.
        also: other servers that it may ask.
    """

    page: Page
    server: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    also: tuple[str, ...] = ()

    def told(self, kind: str, text: str) -> None:
        """Note what the console says; a verbose one gives advice on forms, too."""
        if kind not in ("verbose", "debug", "info", "log"):
            self.complaints.append(f"{kind}: {text}")

    def refused(self) -> None:
        """Leave out what the console says of an answer with a status of 4xx."""
        told = ("Failed to load resource: the server responded with a status of 4", "Response Status Error Code 4")
        self.complaints = [each for each in self.complaints if not any(text in each for text in told)]


@pytest.fixture
def look(browser: Browser, url: str) -> Iterator[Callable[..., Seen]]:
    """Opens a page of the server; in the end nothing may have been asked of another one, and nothing complained of."""
    opened: list[Seen] = []

    def at(
        path: str,
        size: tuple[int, int] = DESK,
        scheme: str = "light",
        scripts: bool = True,
        server: str = url,
    ) -> Seen:
        width, height = size
        context = browser.new_context(
            base_url=server,
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
            java_script_enabled=scripts,
        )
        context.set_default_timeout(PATIENCE_MS)
        seen = Seen(context.new_page(), server)
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("console", lambda message: seen.told(message.type, message.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        opened.append(seen)
        seen.page.goto(path, wait_until="load")
        return seen

    yield at
    for seen in opened:
        seen.page.context.close()
    for seen in opened:
        elsewhere = [
            each for each in seen.requests if not each.startswith((f"{seen.server}/", *seen.also, "data:", "blob:"))
        ]
        assert not elsewhere, elsewhere
        assert not seen.complaints, seen.complaints
