"""The tree drawn in the docstring of `errors.py` is the real one: classes, order, parents and exit codes."""

from __future__ import annotations

import inspect
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from lakeward import errors
from lakeward.errors import LakewardError

LINE = re.compile(r"^ {4}(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+)(?: +exit (?P<code>\d+))?(?: {2,}.*)?$")

Drawn = list[tuple[str, str | None, int]]


def drawn_tree() -> Drawn:
    """Return (class, parent, exit code) of every line of the drawing; a line without a code has its parent's."""
    tree: Drawn = []
    path: list[tuple[str, int]] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := LINE.match(line):
            depth = len(match["branch"]) // 4
            del path[depth:]
            parent = path[-1] if path else None
            code = int(match["code"]) if match["code"] else parent[1] if parent else 1
            tree.append((match["name"], parent[0] if parent else None, code))
            path.append((match["name"], code))
    return tree


def real_tree() -> Drawn:
    """Return the same of the classes themselves, in the order of the file."""
    classes = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, LakewardError)]
    return [(c.__name__, None if c is LakewardError else c.__base__.__name__, c.exit_code) for c in classes]


def all_classes() -> list[type[LakewardError]]:
    return [getattr(errors, name) for name, _, _ in real_tree()]


def test_drawing_is_read_to_its_end() -> None:
    """Guards the parser above: every branch of the drawing has to become a class."""
    branches = [line for line in (errors.__doc__ or "").splitlines() if "── " in line]
    assert len(drawn_tree()) == len(branches) + 1 > 30


def test_drawn_tree_is_the_real_tree() -> None:
    assert drawn_tree() == real_tree()


def test_exit_codes_are_the_documented_ones() -> None:
    """0 is success and 3 is pending changes, which is an answer and not an error."""
    assert {code for _, _, code in real_tree()} == {1, 2, 4, 5, 6}


@pytest.mark.parametrize("error", all_classes(), ids=lambda error: error.__name__)
def test_every_error_has_one_parent_and_a_docstring(error: type[LakewardError]) -> None:
    assert len(error.__bases__) == 1
    assert error.__dict__.get("__doc__")


@pytest.mark.parametrize("error", all_classes(), ids=lambda error: error.__name__)
def test_to_json_carries_class_text_and_exit_code(error: type[LakewardError]) -> None:
    raised = error("dataset 'a.b.c' is locked", safe="it is unchanged", next_step="lakeward status", dataset="a.b.c")
    assert json.loads(json.dumps(raised.to_json())) == {
        "error": error.__name__,
        "message": "dataset 'a.b.c' is locked",
        "safe": "it is unchanged",
        "next_steps": ["lakeward status"],
        "exit_code": error.exit_code,
        "fields": {"dataset": "a.b.c"},
    }


def test_to_json_writes_fields_that_json_lacks_as_text() -> None:
    raised = LakewardError("x", value=Decimal("1.50"), path=Path("a/b"), row=3, key=None, ok=True)
    assert raised.to_json()["fields"] == {"value": "1.50", "path": "a/b", "row": 3, "key": None, "ok": True}
    json.dumps(raised.to_json())


def test_text_has_message_what_is_safe_and_the_next_step() -> None:
    assert str(LakewardError("it broke")) == "it broke"
    assert str(LakewardError("it broke", safe="the data", next_step="retry")) == "it broke\nSafe: the data\nNext: retry"
    assert LakewardError("it broke").to_json()["next_steps"] == []


def test_fields_are_attributes_of_the_error_for_programs() -> None:
    assert errors.ValueRefused("x", column="amount", row=300_001).fields == {"column": "amount", "row": 300_001}
