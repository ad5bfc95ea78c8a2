"""The server asks who asks: tokens of programs, sessions of browsers, and how often."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import lakeward
from lakeward.access.guard import closed, itself
from lakeward.access.roles import Role
from lakeward.server.app import create_app
from lakeward.server.logins import SESSION_COOKIE, Logins, within
from lakeward.server.rates import FAILED_LOGINS, Rates

HTML = {"Accept": "text/html"}


@pytest.fixture
def client(ws: lakeward.Workspace, tmp_path: Path) -> Iterator[TestClient]:
    """A client of a server that asks who asks."""
    logins = Logins(ws.access, Rates("50/minute"), hours=1)
    app = create_app(ws, tmp_path, page_rows=100, body_limit=1 << 20, logins=logins)
    with closed(), TestClient(app, base_url="http://localhost", follow_redirects=False) as opened:
        yield opened


def bearer(text: str) -> dict[str, str]:
    """The header of a program."""
    return {"Authorization": f"Bearer {text}"}


def test_who_does_not_say_who_they_are_gets_nothing(ws: lakeward.Workspace, client: TestClient) -> None:
    """But whether the server is there; and people are led to the login."""
    refused = client.get("/api/v1/datasets")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert refused.json()["title"] == "Unauthenticated"
    assert client.get("/api/v1/openapi.json").status_code == 401
    assert client.get("/metrics").status_code == 401
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").json()["login"] == "required"
    page = client.get("/datasets?order=name", headers=HTML)
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=/datasets%3Forder%3Dname")
    part = client.get("/datasets", headers={**HTML, "HX-Request": "true"})
    assert (part.status_code, part.headers["hx-redirect"]) == (401, "/login")
    for header in ("Bearer ", "Basic YTpi", "Bearer lw_aaaaaaaa_" + "a" * 43):
        assert client.get("/api/v1/datasets", headers={"Authorization": header}).status_code == 401


def test_a_program_may_what_its_token_lets_it(ws: lakeward.Workspace, client: TestClient, catalog: str) -> None:
    """And a token that was revoked nothing more, from then on."""
    made, text = _token(ws, f"prog of {catalog}", Role.VIEWER, f"{catalog}.sales")
    listed = client.get("/api/v1/datasets", headers=bearer(text)).json()["datasets"]
    assert [each["name"] for each in listed] == [f"{catalog}.sales.orders"]
    rows = f"/api/v1/datasets/{catalog}.sales.orders/rows"
    assert len(client.get(rows, headers=bearer(text)).json()["rows"]) == 2
    streamed = client.get(rows, headers={**bearer(text), "Accept": "application/x-ndjson"})
    assert len(streamed.text.splitlines()) == 2
    written = client.post(rows, json=[{"id": 9, "amount": 1}], headers=bearer(text))
    assert (written.status_code, written.json()["fields"]["action"]) == (403, "dataset.write")
    assert client.get(f"/api/v1/datasets/{catalog}.hr.salaries", headers=bearer(text)).status_code == 404
    with itself():
        ws.access.revoke(made)
    assert client.get(rows, headers=bearer(text)).status_code == 401


def test_a_browser_logs_in_and_out(ws: lakeward.Workspace, client: TestClient, catalog: str) -> None:
    """Its session is out of reach for scripts and other sites, and is no token."""
    _, text = _token(ws, f"kim of {catalog}", Role.VIEWER)
    wrong = client.post("/login", data={"token": text[:-2] + "zz", "next": "/datasets"}, headers=HTML)
    assert (wrong.status_code, wrong.headers["location"]) == (303, "/login?failed=token&next=/datasets")
    done = client.post("/login", data={"token": f" {text} ", "next": "/datasets"}, headers=HTML)
    assert (done.status_code, done.headers["location"]) == (303, "/datasets")
    cookie = done.headers["set-cookie"]
    assert all(each in cookie for each in ("HttpOnly", "SameSite=strict", "Max-Age=3600"))
    assert "Secure" not in cookie
    session = client.cookies[SESSION_COOKIE]
    assert session != text
    assert client.get("/datasets", headers=HTML).status_code == 200
    assert client.get("/api/v1/datasets", headers=bearer(session)).status_code == 401
    assert client.post("/logout", headers=HTML).headers["location"] == "/login"
    client.cookies.set(SESSION_COOKIE, session)
    assert client.get("/datasets", headers=HTML).status_code == 303
    client.cookies.set(SESSION_COOKIE, text)
    assert client.get("/datasets", headers=HTML).status_code == 303


def test_a_session_over_https_never_goes_over_less(ws: lakeward.Workspace, client: TestClient, catalog: str) -> None:
    """Also where a proxy ends TLS and says so, which the server has seen to by then."""
    _, text = _token(ws, f"lou of {catalog}", Role.VIEWER)
    done = client.post("https://localhost/login", data={"token": text}, headers=HTML)
    assert "Secure" in done.headers["set-cookie"]


@pytest.mark.parametrize(
    ("asked", "goes"),
    [
        (None, "/"),
        ("", "/"),
        ("/a?b=c", "/a?b=c"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/\n/evil.example", "/"),
    ],
)
def test_a_login_leads_nowhere_else(asked: str | None, goes: str) -> None:
    """Only to an address of this server."""
    assert within(asked) == goes


def test_who_asks_too_often_waits(ws: lakeward.Workspace, client: TestClient, catalog: str) -> None:
    """Each user for themselves."""
    (_, one), (_, other) = (_token(ws, f"{name} of {catalog}", Role.VIEWER) for name in ("max", "nic"))
    answers = [client.get("/api/v1/openapi.json", headers=bearer(one)) for _ in range(51)]
    assert [each.status_code for each in answers[:50]] == [200] * 50
    assert answers[50].status_code == 429
    assert 1 <= int(answers[50].headers["retry-after"]) <= 60
    assert client.get("/api/v1/openapi.json", headers=bearer(other)).status_code == 200


def test_who_guesses_is_stopped(ws: lakeward.Workspace, client: TestClient, catalog: str) -> None:
    """By their address, in whatever way they guess."""
    _, text = _token(ws, f"oda of {catalog}", Role.VIEWER)
    tries = int(FAILED_LOGINS.partition("/")[0])
    for number in range(tries):
        guess = f"lw_aaaaaaaa_{number:043}"
        if number % 2:
            client.post("/login", data={"token": guess})
        else:
            assert client.get("/api/v1/datasets", headers=bearer(guess)).status_code == 401
    assert client.get("/api/v1/datasets", headers=bearer(text)).status_code == 429
    assert client.post("/login", data={"token": text}).status_code == 429


def test_no_answer_and_no_line_of_the_log_has_a_token(
    ws: lakeward.Workspace, client: TestClient, catalog: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither where it counts, nor where it is refused, nor in what admins are told."""
    caplog.set_level(logging.DEBUG)
    _, text = _token(ws, f"pat of {catalog}", Role.ADMIN)
    answers = [
        client.get(path, headers=bearer(text))
        for path in ("/api/v1/datasets", "/api/v1/nonesuch", "/api/v1/openapi.json", "/metrics", "/readyz")
    ]
    answers += [client.get("/api/v1/datasets", headers=bearer(text + "x")), client.post("/login", data={"token": text})]
    answers += [client.post("/login", data={"token": text + "x"}), client.post("/login", data={"token": text * 9})]
    told = "".join(each.text + str({k: v for k, v in each.headers.items() if k != "set-cookie"}) for each in answers)
    with itself():
        audited = ws.access.audit()
    assert text[13:] not in told + caplog.text + str(audited)
    assert client.cookies[SESSION_COOKIE][13:] not in caplog.text


def _token(ws: lakeward.Workspace, user: str, role: Role, on: str | None = None) -> tuple[str, str]:
    """A token as the owner makes it on the machine."""
    with itself():
        made, text = ws.access.add_token(user, role=role, on=on)
    return made.name, text
