"""A small provider of names that speaks OpenID Connect over real HTTP: it signs what it says, and checks who asks."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from lakeward.server.serving import _listening

CLIENT, SECRET = "lakeward", "s3cret/of: the client+"


@dataclass
class Provider:
    """What the provider does, and what a test lets it do wrong.

    Args:
        callback: where it sends browsers back to, and nowhere else.
        url: where it is.
        claims: what it says besides, or otherwise.
        key: what it signs with.
        shown: what it shows to verify that with.
    """

    callback: str = ""
    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    shown: RSAKey | None = None
    challenges: dict[str, str] = field(default_factory=dict)
    nonces: dict[str, str] = field(default_factory=dict)

    def approve(self, address: str) -> str:
        """Do what a person does there, and return the code."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert (asked["client_id"], asked["redirect_uri"], asked["response_type"]) == (CLIENT, self.callback, "code")
        assert "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        code = f"code{len(self.challenges)}"
        self.challenges[code], self.nonces[code] = asked["code_challenge"], asked["nonce"]
        return code

    async def authorize(self, request: Request) -> HTMLResponse:
        """The page that asks a person whether they are themselves."""
        (state,) = parse_qs(urlsplit(str(request.url)).query)["state"]
        ways = {
            "Go on as ann": {"code": self.approve(str(request.url)), "state": state},
            "Never mind": {"error": "access_denied", "state": state},
        }
        links = [f'<a href="{escape(f"{self.callback}?{urlencode(each)}")}">{name}</a>' for name, each in ways.items()]
        head = '<!doctype html><html lang="en"><title>Who?</title><link rel="icon" href="data:,">'
        return HTMLResponse(f"{head}<h1>Who are you?</h1>{''.join(links)}")

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
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {basic}":
            return JSONResponse({"error": "invalid_client"}, 401)
        form = await request.form()
        code, verifier = str(form["code"]), str(form["code_verifier"])
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if self.challenges.pop(code, None) != challenge:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "exp": now + 60, "iat": now, "nonce": self.nonces[code]}
        signed = jwt.encode(
            {"alg": "RS256", "kid": self.key.kid}, {**claims, "email": "ann@example.com", **self.claims}, self.key
        )
        return JSONResponse({"access_token": "none", "token_type": "Bearer", "id_token": signed})


@contextmanager
def providing(host: str = "127.0.0.1") -> Iterator[Provider]:
    """Run a provider on this machine, called by a name of it: `localhost` is another site than `127.0.0.1`."""
    provider = Provider()
    app = Starlette(
        routes=[
            Route("/.well-known/openid-configuration", provider.configuration),
            Route("/authorize", provider.authorize),
            Route("/keys", provider.keys),
            Route("/token", provider.token, methods=["POST"]),
        ]
    )
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    with _listening("127.0.0.1", 0) as listener:
        provider.url = f"http://{host}:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield provider
        server.should_exit = True
        thread.join()
