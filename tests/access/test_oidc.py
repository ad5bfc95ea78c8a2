"""A login by a provider of names: a small one that signs what it says, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import RSAKey
from starlette.testclient import TestClient

import lakeward
from lakeward.access.guard import closed
from lakeward.access.roles import Role
from lakeward.server.app import create_app
from lakeward.server.logins import SESSION_COOKIE, Logins
from lakeward.server.oidc import Oidc
from lakeward.server.rates import Rates
from lakeward.wiring.sections import OidcSection
from support.provider import SECRET, Provider, providing

HTML = {"Accept": "text/html"}
CALLBACK = "http://localhost/login/oidc/callback"


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    """A provider on this machine."""
    with providing() as provider:
        provider.callback = CALLBACK
        yield provider


@pytest.fixture
def provider(running: Provider) -> Iterator[Provider]:
    """The provider, which does all right."""
    running.claims, running.shown = {}, None
    return running


@pytest.fixture
def client(
    ws: lakeward.Workspace, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    """A browser at a server that people log in to by the provider."""
    ws.access.set_grant("ann@example.com", Role.VIEWER)
    monkeypatch.setenv("OIDC_SECRET", SECRET)
    oidc = Oidc(OidcSection(issuer=provider.url, client_secret="env:OIDC_SECRET"), provider.url)
    app = create_app(
        ws, tmp_path, page_rows=10, body_limit=1 << 20, logins=Logins(ws.access, Rates(None), hours=1, oidc=oidc)
    )
    with closed(), TestClient(app, base_url="http://localhost", follow_redirects=False, headers=HTML) as opened:
        yield opened


def begun(client: TestClient, to: str = "/datasets") -> tuple[str, str]:
    """Begin a login; where the browser is sent, and the state that it comes back with."""
    answer = client.get("/login/oidc", params={"next": to})
    assert answer.status_code == 303
    address = answer.headers["location"]
    assert "HttpOnly" in answer.headers["set-cookie"]
    return address, parse_qs(urlsplit(address).query)["state"][0]


def test_who_logs_in_elsewhere_is_who_they_say_there(client: TestClient, provider: Provider) -> None:
    """And goes on to where they wanted to, with a session; once."""
    assert provider.url not in client.get("/login").text
    address, state = begun(client)
    code = provider.approve(address)
    back = client.get("/login/oidc/callback", params={"state": state, "code": code})
    assert (back.status_code, 'url=/datasets"' in back.text) == (200, True)
    assert "SameSite=strict" in back.headers["set-cookie"]
    page = client.get("/datasets")
    assert (page.status_code, "ann@example.com" in page.text) == (200, True)
    again = client.get("/login/oidc/callback", params={"state": state, "code": code})
    assert again.status_code == 403


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"iss": "http://elsewhere.example"},
        {"exp": 1},
        {"nonce": "another"},
        {"email": None},
        {"email_verified": False},
    ],
    ids=lambda claims: next(iter(claims)),
)
def test_what_is_not_said_to_us_now_is_not_believed(
    client: TestClient, provider: Provider, claims: dict[str, Any]
) -> None:
    """Nobody is logged in."""
    provider.claims = claims
    address, state = begun(client)
    back = client.get("/login/oidc/callback", params={"state": state, "code": provider.approve(address)})
    assert (back.status_code, client.cookies.get(SESSION_COOKIE)) == (403, None)


def test_what_others_sign_is_not_believed(client: TestClient, provider: Provider) -> None:
    """A signature by another key of the same name."""
    provider.shown = RSAKey.generate_key(2048, {"kid": "one"})
    address, state = begun(client)
    back = client.get("/login/oidc/callback", params={"state": state, "code": provider.approve(address)})
    assert (back.status_code, client.cookies.get(SESSION_COOKIE)) == (403, None)


def test_a_provider_may_change_its_keys(client: TestClient, provider: Provider) -> None:
    """They are fetched anew when a signature is of none that is known."""
    for key in ("one", "two"):
        provider.key = RSAKey.generate_key(2048, {"kid": key})
        address, state = begun(client)
        back = client.get("/login/oidc/callback", params={"state": state, "code": provider.approve(address)})
        assert back.status_code == 200


def test_a_login_of_another_browser_is_none(client: TestClient, provider: Provider) -> None:
    """Nor one without a code, or of a state that nobody has begun."""
    address, state = begun(client)
    code = provider.approve(address)
    client.cookies.clear()
    assert client.get("/login/oidc/callback", params={"state": state, "code": code}).status_code == 403
    _, state = begun(client)
    assert client.get("/login/oidc/callback", params={"state": state, "error": "access_denied"}).status_code == 403
    assert client.get("/login/oidc/callback").status_code == 403
    assert client.get("/login/oidc/callback", params={"state": "x" * 43, "code": code}).status_code == 403


def test_a_login_leads_to_this_server_alone(client: TestClient, provider: Provider) -> None:
    """Whatever was asked for."""
    for to, goes in (
        ("//evil.example", "/"),
        ('/a"><script>', "/a%22%3E%3Cscript%3E"),
        ("/a?b=c&d=e", "/a?b=c&amp;d=e"),
    ):
        address, state = begun(client, to)
        back = client.get("/login/oidc/callback", params={"state": state, "code": provider.approve(address)})
        assert f'url={goes}"' in back.text
