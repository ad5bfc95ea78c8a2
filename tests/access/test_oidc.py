"""A login by a provider of names: a small one that signs what it says, over real HTTP."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import lakeward
from lakeward.access.guard import closed
from lakeward.access.roles import Role
from lakeward.server.app import create_app
from lakeward.server.logins import SESSION_COOKIE, Logins
from lakeward.server.oidc import Oidc
from lakeward.server.rates import Rates
from lakeward.server.serving import _listening
from lakeward.wiring.sections import OidcSection

HTML = {"Accept": "text/html"}
CALLBACK = "http://localhost/login/oidc/callback"


@dataclass
class Provider:
    """What the provider does, and what a test lets it do wrong.

    Args:
        url: where it is.
        claims: what it says besides, or otherwise.
        key: what it signs with.
        shown: what it shows to verify that with.
    """

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    shown: RSAKey | None = None
    challenges: dict[str, str] = field(default_factory=dict)
    nonces: dict[str, str] = field(default_factory=dict)

    def approve(self, address: str) -> str:
        """Do what a person does there, and return the code."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert (asked["client_id"], asked["redirect_uri"], asked["response_type"]) == ("lakeward", CALLBACK, "code")
        assert asked["code_challenge_method"] == "S256"
        code = f"code{len(self.challenges)}"
        self.challenges[code], self.nonces[code] = asked["code_challenge"], asked["nonce"]
        return code

    async def configuration(self, _: Request) -> JSONResponse:
        """Where it is what."""
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
            }
        )

    async def keys(self, _: Request) -> JSONResponse:
        """What its signatures are verified with."""
        return JSONResponse({"keys": [(self.shown or self.key).as_dict(private=False)]})

    async def token(self, request: Request) -> JSONResponse:
        """Give a signed statement for a code, once, to whoever has begun it."""
        form = await request.form()
        code, verifier = str(form["code"]), str(form["code_verifier"])
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if self.challenges.pop(code, None) != challenge:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": self.url, "aud": "lakeward", "exp": now + 60, "iat": now, "nonce": self.nonces[code]}
        signed = jwt.encode(
            {"alg": "RS256", "kid": "one"}, {**claims, "email": "ann@example.com", **self.claims}, self.key
        )
        return JSONResponse({"access_token": "none", "token_type": "Bearer", "id_token": signed})


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    """A provider on this machine."""
    provider = Provider()
    app = Starlette(
        routes=[
            Route("/.well-known/openid-configuration", provider.configuration),
            Route("/keys", provider.keys),
            Route("/token", provider.token, methods=["POST"]),
        ]
    )
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    with _listening("127.0.0.1", 0) as listener:
        provider.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield provider
        server.should_exit = True
        thread.join()


@pytest.fixture
def provider(running: Provider) -> Iterator[Provider]:
    """The provider, which does all right."""
    running.claims, running.shown = {}, None
    return running


@pytest.fixture
def client(ws: lakeward.Workspace, provider: Provider, tmp_path: Path) -> Iterator[TestClient]:
    """A browser at a server that people log in to by the provider."""
    ws.access.set_grant("ann@example.com", Role.VIEWER)
    oidc = Oidc(OidcSection(issuer=provider.url), provider.url)
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
