"""Signing in with a browser: who may look may not write, and pages of other sites can't use the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

import lakeward
from browser.conftest import Seen
from lakeward.access.roles import Role
from lakeward.server.app import create_app
from lakeward.server.logins import SESSION_COOKIE, Logins
from lakeward.server.rates import Rates
from support.serving import serving

Look = Callable[..., Seen]


@pytest.fixture(scope="module")
def guarded(seen_workspace: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that asks for names."""
    scratch: Path = tmp_path_factory.mktemp("bodies")
    logins = Logins(seen_workspace.access, Rates("5000/minute"), hours=1)
    with serving(create_app(seen_workspace, scratch, page_rows=100, body_limit=1 << 20, logins=logins)) as address:
        yield address


def test_a_login(look: Look, guarded: str, seen_workspace: lakeward.Workspace, orders: lakeward.Dataset) -> None:
    _, token = seen_workspace.access.add_token("vera", role=Role.VIEWER, on="main.seen")
    seen = look("/datasets/main.seen.orders", server=guarded)
    page = seen.page
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Token").fill("lw_nothing")
    page.keyboard.press("Enter")
    expect(page.locator(".message.error")).to_contain_text("none that counts")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("orders")
    expect(page.locator(".who")).to_contain_text("vera")
    expect(page.get_by_role("link", name="Edit rows")).to_have_count(0)

    (cookie,) = [each for each in page.context.cookies() if each["name"] == SESSION_COOKIE]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    session = {SESSION_COOKIE: cookie["value"]}
    with httpx.Client(base_url=guarded, cookies=session, headers={"Accept": "text/html"}) as client:
        assert client.get("/").status_code == 200
        assert client.get("/edit/main.seen.orders").status_code == 403
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            for path in ("/logout", "/sql", "/edit/main.seen.orders", "/undo/main.seen.orders"):
                assert client.post(path, data={"sql": "select 1"}, headers=headers).status_code == 403
        assert client.get("/").status_code == 200

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.goto("/datasets")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
