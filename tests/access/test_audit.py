"""The audit log has one statement, and knows every action that somebody may or may not do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import lakeward
from lakeward.access.actions import ACTIONS
from support.databases import rows_of

SOURCE = Path(lakeward.__file__).parent
CALLS = {"require", "may", "may_somewhere", "needs", "audit", "note", "entry"}


def named() -> Iterator[tuple[str, str]]:
    """Every action that is named where something is asked or written, with the place in the code."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called not in CALLS:
                continue
            for each in node.args:
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and _is_action(each.value):
                    yield each.value, f"{path.relative_to(SOURCE)}:{node.lineno}"


def _is_action(text: str) -> bool:
    noun, dot, verb = text.partition(".")
    return bool(dot) and noun.isalpha() and verb.isalpha()


def test_every_action_that_is_named_has_its_role() -> None:
    """One that has none would be refused to everybody, or raise where it is asked."""
    found = list(named())
    assert [each for each in found if each[0] not in ACTIONS] == []
    assert len({action for action, _ in found}) > 20


def test_the_log_is_written_by_one_statement() -> None:
    """So that no line is written without the question whether it may be."""
    files = [path for path in SOURCE.rglob("*.sql") if "INSERT INTO lakeward.audit_log" in path.read_text()]
    files += [path for path in SOURCE.rglob("*.py") if "INSERT INTO lakeward.audit_log" in path.read_text()]
    assert [path.relative_to(SOURCE).as_posix() for path in files] == ["control/audit.sql"]


def test_what_a_person_changes_is_in_the_log_with_what_was_before(ws: lakeward.Workspace, catalog: str) -> None:
    """A flip step by step, a version that is kept, a rule, a flag."""
    name = f"{catalog}.sales.orders"
    flip, orders = ws.flip(name), ws.dataset(name)
    flip.run("iceberg")
    flip.revert()
    orders.keep()
    orders.let_go(orders.version)
    ws.flags.set(reader="api.read", prefer="iceberg", dataset=name)
    ws.flags.clear(reader="api.read", dataset=name)
    ws.maintain(name)
    lines = rows_of(
        ws, "SELECT action, before, after FROM lakeward.audit_log WHERE subject LIKE %s ORDER BY id", f"%{name}"
    )
    flips = [(before["mode"], after) for action, before, after in lines if action == "flip.run"]
    steps = [(mode, after.get("stage") or after["undone"], after["mode"]) for mode, after in flips]
    assert steps[-2:] == [("dual", "switch", "iceberg_dual"), ("iceberg_dual", "switch", "dual")]
    assert [action for action, _, _ in lines if action != "flip.run"] == [
        "dataset.create",
        "dataset.keep",
        "dataset.release",
        "flag.set",
        "flag.clear",
        "maintenance.run",
    ]
    assert {action for action, _, _ in lines} <= set(ACTIONS)
