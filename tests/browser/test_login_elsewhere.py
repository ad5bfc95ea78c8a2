"""Signing in by a provider of names, with a browser: there and back between two sites, and out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from joserfc.jwk import RSAKey
from playwright.sync_api import Page, expect

import lakeward
from browser.conftest import Seen
from lakeward.access.roles import Role
from lakeward.server.app import create_app
from lakeward.server.logins import SESSION_COOKIE, Logins
from lakeward.server.oidc import Oidc
from lakeward.server.rates import Rates
from lakeward.server.routes.login import CALLBACK
from lakeward.wiring.sections import OidcSection
from support.provider import SECRET, Provider, providing
from support.serving import serving

Look = Callable[..., Seen]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """Of another site than the server's."""
    with providing("localhost") as running:
        yield running


@pytest.fixture(scope="module")
def guarded(
    seen_workspace: lakeward.Workspace, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A server that people log in to by the provider."""
    place: Path = tmp_path_factory.mktemp("oidc")
    (place / "secret").write_text(SECRET, encoding="utf-8")
    wanted = OidcSection(issuer=provider.url, client_secret=f"file:{place / 'secret'}", name="the office")
    logins = Logins(seen_workspace.access, Rates("5000/minute"), hours=1, oidc=Oidc(wanted, provider.url))
    seen_workspace.access.set_grant("ann@example.com", Role.VIEWER, "main.seen")
    with serving(create_app(seen_workspace, place, page_rows=100, body_limit=1 << 20, logins=logins)) as address:
        provider.callback = address + CALLBACK
        yield address


def signed_in(page: Page) -> bool:
    return SESSION_COOKIE in {each["name"] for each in page.context.cookies()}


def test_there_and_back_and_out(look: Look, guarded: str, provider: Provider, orders: lakeward.Dataset) -> None:
    seen = look("/datasets/main.seen.orders?tab=versions", server=guarded)
    seen.also = (provider.url,)
    page = seen.page
    page.get_by_role("link", name="Sign in with the office").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Who are you?")
    page.get_by_role("link", name="Go on as ann").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("orders")
    assert page.url == f"{guarded}/datasets/main.seen.orders?tab=versions"
    expect(page.locator(".who")).to_contain_text("ann@example.com")
    (cookie,) = [each for each in page.context.cookies() if each["name"] == SESSION_COOKIE]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert not signed_in(page)
    page.goto("/datasets")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_who_is_refused_learns_why_and_may_try_again(look: Look, guarded: str, provider: Provider) -> None:
    seen = look("/login", server=guarded)
    seen.also = (provider.url,)
    page = seen.page
    unbelievable = "what the office says can't be believed"
    wrong = ({"aud": "another"}, {"nonce": "another"}, {"exp": 1})
    provider.shown = own = provider.key
    for claims, key, choice, why in (
        ({}, own, "Never mind", "the office did not let them in"),
        *((each, own, "Go on as ann", unbelievable) for each in wrong),
        ({}, RSAKey.generate_key(2048, {"kid": "one"}), "Go on as ann", unbelievable),
    ):
        provider.claims, provider.key = claims, key
        page.goto("/login")
        page.get_by_role("link", name="Sign in with the office").click()
        page.get_by_role("link", name=choice).click()
        expect(page.locator("main")).to_contain_text(why)
        assert not signed_in(page)
    seen.refused()
    provider.claims, provider.key = {}, own
    page.get_by_role("link", name="Sign in").first.click()
    page.get_by_role("link", name="Sign in with the office").click()
    page.get_by_role("link", name="Go on as ann").click()
    expect(page.locator(".who")).to_contain_text("ann@example.com")
