"""Tokens and grants: who somebody is by what they show, and when that counts no more."""

from __future__ import annotations

import pytest

import lakeward
from lakeward.access.guard import acting, closed
from lakeward.access.principal import Grant, Principal
from lakeward.access.roles import Role
from lakeward.errors import ConflictError, Forbidden, InvalidName, UnknownObject, UsageError
from support.databases import rows_of


def test_a_token_counts_for_its_user_up_to_its_ceiling_and_within_its_place(
    ws: lakeward.Workspace, catalog: str
) -> None:
    """Its text is told once, and is nowhere afterwards."""
    access, user = ws.access, f"ann of {catalog}"
    made, text = access.add_token(
        user, role=Role.OPERATOR, on=catalog, at_most=Role.BUILDER, within=f"{catalog}.sales", about="nightly"
    )
    shown = access.shown(text)
    assert shown is not None
    who = shown.principal
    assert (who.name, who.role_in((catalog, "sales", "orders")), who.role_in((catalog, "hr", "salaries"))) == (
        user,
        Role.BUILDER,
        None,
    )
    assert access.principal_of(user).role_in((catalog, "hr")) is Role.OPERATOR
    kept = rows_of(ws, "SELECT t::text FROM lakeward.tokens t UNION ALL SELECT a::text FROM lakeward.audit_log a")
    assert text[13:] not in str(kept)
    (listed,) = access.tokens(user)
    assert (listed.name, listed.about, listed.used_at is not None) == (made.name, "nightly", True)
    assert (listed.to_json()["within"], listed.to_json()["ceiling"]) == (f"{catalog}.sales", "builder")


@pytest.mark.parametrize(
    "change",
    [lambda text: text[:-1] + ("a" if text[-1] != "a" else "b"), str.upper, lambda text: text + " ", lambda _: ""],
)
def test_what_is_almost_a_token_is_none(ws: lakeward.Workspace, change: object) -> None:
    """Neither another secret with its name, nor another form of it."""
    _, text = ws.access.add_token("somebody")
    assert callable(change)
    assert ws.access.shown(change(text)) is None
    assert ws.access.shown(text) is not None


def test_a_revoked_token_ends_at_once_and_its_sessions_with_it(ws: lakeward.Workspace) -> None:
    """One that is over counts no more, either."""
    access = ws.access
    made, text = access.add_token("bea", role=Role.VIEWER)
    shown = access.shown(text)
    assert shown is not None
    session = access.session(shown.principal, shown, hours=1)
    found = access.shown(session)
    assert found is not None
    assert (found.kind, found.principal.role_in(())) == ("session", Role.VIEWER)
    assert access.revoke(made.name)
    assert not access.revoke(made.name)
    assert (access.shown(text), access.shown(session)) == (None, None)
    with pytest.raises(UnknownObject):
        access.revoke("nonesuch")
    _, over = access.add_token("bea", days=1)
    rows_of(ws, "UPDATE lakeward.tokens SET expires_at = now() - interval '1 second' WHERE user_name = 'bea'")
    assert access.shown(over) is None
    assert not access.tokens("bea")[-1].counts


def test_a_session_ends_when_it_is_logged_out(ws: lakeward.Workspace) -> None:
    """For whoever has its text; a guess at its name does nothing."""
    session = ws.access.session(Principal("cy"), hours=1)
    ws.access.end_session(session[:13] + "x" * 43)
    assert ws.access.shown(session) is not None
    ws.access.end_session(session)
    assert ws.access.shown(session) is None


def test_a_grant_stays_with_what_it_is_for(ws: lakeward.Workspace, catalog: str) -> None:
    """A rename changes nothing; what is dropped and purged takes it along, and who gets its name inherits nothing."""
    user, access = f"dan of {catalog}", ws.access
    assert access.set_grant(user, Role.VIEWER, f"{catalog}.sales.orders")
    assert not access.set_grant(user, Role.VIEWER, f"{catalog}.sales.orders")
    assert access.set_grant(user, Role.BUILDER, f"{catalog}.sales.orders")
    ws.names("dataset").rename(f"{catalog}.sales.orders", "sold")
    (grant,) = access.grants(user)
    assert (grant.where, grant.role) == (f"{catalog}.sales.sold", Role.BUILDER)
    with closed(), acting(access.principal_of(user)):
        assert [each.name for each in ws.datasets()] == [f"{catalog}.sales.sold"]
    assert access.remove_grant(user, f"{catalog}.sales.sold")
    assert not access.remove_grant(user, f"{catalog}.sales.sold")
    access.set_grant(user, Role.OPERATOR, f"{catalog}.sales.sold")
    with closed(), acting(access.principal_of(user)):
        ws.names("dataset").drop(f"{catalog}.sales.sold")
        ws.names("dataset").undrop(f"{catalog}.sales.sold")
    ws.names("dataset").drop(f"{catalog}.sales.sold")
    rows_of(ws, "UPDATE lakeward.datasets SET purged_at = now() WHERE name = 'sold'")
    assert (access.principal_of(user).grants, access.grants(user)) == ((), [])


def test_a_workspace_keeps_an_admin(ws: lakeward.Workspace) -> None:
    """Neither taken away nor made less; as long as it is the last one."""
    access = ws.access
    rows_of(ws, "DELETE FROM lakeward.grants WHERE role = 'admin'")
    access.set_grant("eve", Role.ADMIN)
    for change in (lambda: access.remove_grant("eve"), lambda: access.set_grant("eve", Role.VIEWER)):
        with pytest.raises(ConflictError, match="last admin"):
            change()
    access.set_grant("fay", Role.ADMIN)
    assert access.set_grant("eve", Role.VIEWER)
    with pytest.raises(ConflictError, match="last admin"):
        access.remove_grant("fay")


def test_only_an_admin_says_who_may_do_what(ws: lakeward.Workspace, catalog: str) -> None:
    """Not one of a single catalog, either: tokens and grants are the workspace's."""
    for who in (Principal("gil", (Grant(Role.OPERATOR),)), Principal("gil", (Grant(Role.ADMIN, (catalog,)),))):
        with closed(), acting(who):
            for change in (
                lambda: ws.access.add_token("gil"),
                lambda: ws.access.set_grant("gil", Role.ADMIN),
                lambda: ws.access.remove_grant("eve"),
                lambda: ws.access.tokens(),
                lambda: ws.access.grants(),
            ):
                with pytest.raises(Forbidden):
                    change()
    with closed(), acting(Principal("gil", (Grant(Role.BUILDER),))), pytest.raises(Forbidden):
        ws.access.audit()


def test_names_and_places_that_are_none_are_refused(ws: lakeward.Workspace) -> None:
    """Before anything is changed."""
    for name in ("", " ann", "a\nb", "x" * 201):
        with pytest.raises(InvalidName):
            ws.access.add_token(name)
    with pytest.raises(UnknownObject):
        ws.access.set_grant("ann", Role.VIEWER, "no.such.place")
    with pytest.raises(InvalidName):
        ws.access.set_grant("ann", Role.VIEWER, "a.b.c.d")
    with pytest.raises(UsageError):
        ws.access.add_token("ann", on="main")


def test_the_audit_log_tells_who_wrote_and_who_granted(ws: lakeward.Workspace, catalog: str) -> None:
    """What the ledger has committed is in it, with who opened it."""
    name, user = f"{catalog}.sales.orders", f"hal of {catalog}"
    ws.access.set_grant(user, Role.BUILDER, catalog)
    with closed(), acting(ws.access.principal_of(user)):
        ws.dataset(name).write([{"id": 3, "amount": 5}])
    (written,) = ws.access.audit(who=user)
    assert (written.action, written.subject, written.before["version"], written.after["added"]) == (
        "dataset.write",
        name,
        1,
        1,
    )
    (granted,) = ws.access.audit(action="grant", subject=user)
    assert (granted.before, granted.after) == (None, {"role": "builder", "on": catalog})
    assert ws.dataset(name).history()[0].actor == user
    assert ws.access.audit(most=1, action="grant.set")[0].at >= granted.at
