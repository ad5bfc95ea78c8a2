"""Logins by a provider of names that speaks OpenID Connect: the authorization code flow, with PKCE, state and nonce.

What a login needs when the browser comes back is kept in this process, and bound to the browser by a cookie of its own.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import OAuth2Client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from lakeward.errors import Forbidden, SourceError
from lakeward.sources.references import resolved
from lakeward.wiring.sections import OidcSection

STATE_COOKIE = "lakeward_login"
MINUTES = 10
MOST = 1000
"""So many logins may be under way at a time; the oldest is forgotten for the next one."""

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Of signatures: none by a secret that both sides know, and none that is none."""

SECONDS = 10.0
"""So long may the provider take to answer."""


@dataclass(frozen=True)
class _Begun:
    """A login that is under way."""

    nonce: str
    verifier: str
    next: str
    until: float


class Oidc:
    """Logs people in by one provider.

    Args:
        wanted: its settings.
        issuer: its address.

    Raises:
        SettingsError: the secret can't be read.
    """

    def __init__(self, wanted: OidcSection, issuer: str) -> None:
        self._wanted = wanted
        self._issuer = issuer
        self._secret = resolved(wanted.client_secret) if wanted.client_secret is not None else None
        self._begun: dict[str, _Begun] = {}
        self._lock = threading.Lock()
        self._metadata: Mapping[str, Any] | None = None
        self._keys: KeySet | None = None

    @property
    def name(self) -> str:
        """What people know the provider by."""
        return self._wanted.name

    def begin(self, callback: str, to: str) -> tuple[str, str]:
        """Begin a login.

        Args:
            callback: the address that the browser comes back to.
            to: where it goes then.

        Returns:
            The address of the provider, and what the browser has to bring back in its cookie.

        Raises:
            SourceError: the provider does not answer.
        """
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        with self._client(callback) as client:
            url, _ = client.create_authorization_url(
                self._known()["authorization_endpoint"], state=state, nonce=nonce, code_verifier=verifier
            )
        with self._lock:
            now = time.monotonic()
            self._begun = {key: each for key, each in self._begun.items() if each.until > now}
            while len(self._begun) >= MOST:
                self._begun.pop(next(iter(self._begun)))
            self._begun[state] = _Begun(nonce, verifier, to, now + MINUTES * 60)
        return str(url), state

    def finish(self, callback: str, state: str | None, cookie: str | None, code: str | None) -> tuple[str, str]:
        """End a login, and return the user's name, and where they wanted to go.

        Args:
            callback: as it was begun with.
            state, code: what the provider sent the browser back with.
            cookie: what the browser kept.

        Raises:
            Forbidden: it is none that was begun by this browser, or the provider says nothing that can be believed.
            SourceError: the provider does not answer.
        """
        with self._lock:
            begun = self._begun.pop(state, None) if state else None
        if begun is None or begun.until < time.monotonic() or not secrets.compare_digest(cookie or "", state or ""):
            raise _refused("it was not begun in this browser, or too long ago")
        if not code:
            raise _refused(f"{self.name} did not let them in")
        try:
            with self._client(callback) as client:
                token = client.fetch_token(
                    self._known()["token_endpoint"],
                    code=code,
                    code_verifier=begun.verifier,
                    grant_type="authorization_code",
                )
        except OAuthError:
            raise _refused(f"{self.name} does not know the login any more") from None
        except httpx.HTTPError as error:
            raise self._silent(error) from None
        return self._user(str(token.get("id_token", "")), begun.nonce), begun.next

    def _user(self, text: str, nonce: str) -> str:
        """Return whom a signed statement of the provider names.

        Raises:
            Forbidden: it is not signed by it, or not meant for us, or for this login.
        """
        claims = jwt.JWTClaimsRegistry(
            iss={"essential": True, "value": self._issuer},
            aud={"essential": True, "value": self._wanted.client_id},
            exp={"essential": True},
            nonce={"essential": True, "value": nonce},
            leeway=60,
        )
        try:
            told = self._decoded(text)
            claims.validate(told)
        except (JoseError, ValueError):
            raise _refused(f"what {self.name} says can't be believed") from None
        user = told.get(self._wanted.user_claim)
        if not isinstance(user, str) or not user.strip():
            raise _refused(f"{self.name} does not say who they are: there is no {self._wanted.user_claim}")
        if self._wanted.user_claim == "email" and told.get("email_verified") is False:
            raise _refused(f"{self.name} has not verified their address")
        return user.strip()

    def _decoded(self, text: str) -> dict[str, Any]:
        if self._keys is not None:
            try:
                return jwt.decode(text, self._keys, algorithms=list(ALGORITHMS)).claims
            except (JoseError, ValueError):
                # Its keys change now and then.
                pass
        self._keys = KeySet.import_key_set(self._fetched(self._known()["jwks_uri"]))  # type: ignore[arg-type]
        return jwt.decode(text, self._keys, algorithms=list(ALGORITHMS)).claims

    def _client(self, callback: str) -> OAuth2Client:
        return OAuth2Client(
            self._wanted.client_id,
            self._secret,
            scope=self._wanted.scope,
            redirect_uri=callback,
            code_challenge_method="S256",
            timeout=SECONDS,
        )

    def _known(self) -> Mapping[str, Any]:
        """Return what the provider says of itself."""
        if self._metadata is None:
            found = self._fetched(self._issuer.rstrip("/") + "/.well-known/openid-configuration")
            missing = {"authorization_endpoint", "token_endpoint", "jwks_uri"} - set(found)
            if found.get("issuer") != self._issuer or missing:
                raise SourceError(
                    f"{self._issuer} says of itself that it is {found.get('issuer')!r}"
                    + (f", without {', '.join(sorted(missing))}" if missing else ""),
                    safe="nobody was logged in",
                    next_step="set server.oidc.issuer to what it says, letter by letter",
                )
            self._metadata = found
        return self._metadata

    def _fetched(self, url: str) -> Mapping[str, Any]:
        try:
            answer = httpx.get(url, timeout=SECONDS)
            answer.raise_for_status()
            found = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise self._silent(error) from None
        return found if isinstance(found, dict) else {}

    def _silent(self, error: Exception) -> SourceError:
        return SourceError(
            f"the provider of names, {self._issuer}, does not answer: {type(error).__name__}",
            safe="nobody was logged in",
            next_step="try again; or log in with a token",
        )


def _refused(why: str) -> Forbidden:
    return Forbidden(f"the login failed: {why}", safe="nobody was logged in", next_step="try again from /login")
