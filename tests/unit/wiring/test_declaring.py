"""Declaring a dataset: repeatable, and refused where it differs."""

from __future__ import annotations

import pytest

import lakeward
from lakeward.errors import NameTaken, UnknownObject


def test_a_declaration_changes_nothing_until_it_is_carried_out(workspace: lakeward.Workspace) -> None:
    declaration = workspace.declare_dataset("a.b.c", {"id": "long"}, ["id"], "iceberg")
    assert declaration.existing is None and workspace.datasets() == []
    [action] = declaration.actions()
    assert action.startswith("create dataset a.b.c on the iceberg arm (id long; primary key id)")
    made = workspace.ensure_dataset(declaration)
    again = workspace.declare_dataset("a.b.c", {"id": "long"}, ["id"])
    assert again.actions() == [] and workspace.ensure_dataset(again).name == made.name
    assert [each.name for each in workspace.datasets()] == ["a.b.c"]


def test_another_one_of_that_name(workspace: lakeward.Workspace) -> None:
    workspace.create_dataset("a.b.c", {"id": "long"})
    with pytest.raises(NameTaken, match="column 't' is missing there, and string was declared"):
        workspace.declare_dataset("a.b.c", {"id": "long", "t": "string"})
    with pytest.raises(UnknownObject, match="unknown arm 'duck'"):
        workspace.declare_dataset("a.b.c", {"id": "long"}, arm="duck")
