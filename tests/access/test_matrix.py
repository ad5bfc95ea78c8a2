"""Every route of the server by every role: generated from the route table, so that a route without a rule fails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.requests import Request
from starlette.testclient import TestClient

import lakeward
from lakeward.access.actions import ACTIONS
from lakeward.access.guard import acting, closed, itself
from lakeward.access.principal import Principal
from lakeward.access.roles import Role
from lakeward.errors import Forbidden, UnknownObject
from lakeward.server.app import create_app
from lakeward.server.authentication import FILES, PUBLIC, SIGNED_IN
from lakeward.server.logins import Logins
from lakeward.server.rates import Rates
from lakeward.server.rules import Rule


@dataclass(frozen=True)
class Somebody:
    """Who asks: what they are, and the token that they show."""

    principal: Principal
    token: str


@pytest.fixture(scope="module")
def app(ws: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """A server that asks who asks."""
    logins = Logins(ws.access, Rates(None), hours=1)
    return create_app(ws, tmp_path_factory.mktemp("matrix"), page_rows=10, body_limit=1 << 20, logins=logins)


@pytest.fixture(scope="module")
def people(ws: lakeward.Workspace) -> Mapping[str, Somebody]:
    """One of each role, one of none, and one who builds, but elsewhere."""
    found = {}
    with itself():
        for catalog in ("own", "foreign"):
            ws.create_dataset(f"{catalog}.sales.orders", {"id": "long"}, ["id"])
        for name, role, place in (
            ("none", None, None),
            *((str(role), role, None) for role in Role),
            ("builder of own", Role.BUILDER, "own"),
        ):
            _, text = ws.access.add_token(f"the {name}", role=role, on=place)
            found[name] = Somebody(ws.access.principal_of(f"the {name}"), text)
    return found


def routes(app: FastAPI) -> Iterator[tuple[str, str, Rule | None]]:
    """Every route: method, path, and its rule."""
    for route in iter_route_contexts(app.routes):
        dependant = getattr(route, "dependant", None)
        rules = [each.call for each in dependant.dependencies if isinstance(each.call, Rule)] if dependant else []
        assert len(rules) < 2, f"{route.path} has several rules"
        for method in sorted(set(route.methods or ()) - {"HEAD"}):
            yield method, str(route.path), rules[0] if rules else None


def test_every_route_states_its_rule(app: FastAPI) -> None:
    """Or is one of the few that need none, which are listed where they are let through."""
    without = {path for _, path, rule in routes(app) if rule is None}
    assert {path for path in without if path not in PUBLIC and not path.startswith(FILES)} <= set(SIGNED_IN)
    assert len(list(routes(app))) > 20


@pytest.mark.parametrize("who", ["none", *map(str, Role), "builder of own"])
def test_a_role_may_what_the_table_says(
    ws: lakeward.Workspace, app: FastAPI, people: Mapping[str, Somebody], who: str
) -> None:
    """On their own datasets and on foreign ones; who is refused is so before anything is done."""
    somebody, wrong = people[who], []
    with closed(), TestClient(app, base_url="http://localhost", follow_redirects=False) as client:
        for method, path, rule in routes(app):
            if rule is None:
                continue
            for catalog in ("own", "foreign") if rule.of is not None else ("own",):
                name = f"{catalog}.sales.orders"
                expected = _expected(somebody.principal, rule, (catalog, "sales", "orders"))
                found = _asked(client, somebody, method, path, name) if expected else _rule(app, somebody, rule, name)
                if found != expected:
                    wrong.append((method, path, name, expected, found))
    assert wrong == []


def test_nobody_gets_further_than_the_login(app: FastAPI) -> None:
    """By whatever route."""
    wrong = []
    with closed(), TestClient(app, base_url="http://localhost", follow_redirects=False) as client:
        for method, path, rule in routes(app):
            if rule is not None or path in SIGNED_IN:
                found = client.request(method, _path(path, "own.sales.orders"))
                if found.status_code != 401:
                    wrong.append((method, path, found.status_code))
    assert wrong == []


def _expected(who: Principal, rule: Rule, place: tuple[str, ...]) -> int | None:
    """The status of who is refused, by the table of actions; None: they are not."""
    lowest = ACTIONS[rule.action]
    if rule.of is not None:
        role = who.role_in(place)
        return 404 if role is None else 403 if role < lowest else None
    roles = [each.role for each in who.regions if rule.anywhere or not each.place]
    return None if roles and max(roles) >= lowest else 403


def _asked(client: TestClient, somebody: Somebody, method: str, path: str, name: str) -> int:
    headers = {"Authorization": f"Bearer {somebody.token}"}
    return client.request(method, _path(path, name), headers=headers).status_code


def _rule(app: FastAPI, somebody: Somebody, rule: Rule, name: str) -> int | None:
    """What the rule says, where the route would do what it is for."""
    request = Request({"type": "http", "app": app, "path_params": {rule.of: name} if rule.of is not None else {}})
    try:
        with acting(somebody.principal):
            rule(request, app.state.rooms)
    except Forbidden:
        return 403
    except UnknownObject:
        return 404
    return None


def _path(path: str, name: str) -> str:
    return re.sub(r"\{\w+(:path)?\}", lambda found: name if found[1] or "name" in found[0] else "1", path)
