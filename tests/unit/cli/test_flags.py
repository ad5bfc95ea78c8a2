"""`lakeward flags`: what it sets is in force, a dry run sets nothing, and a refusal says what to do."""

from __future__ import annotations

import pytest

import lakeward
from lakeward.control.flags.registry import WRITERS, Writer
from support.commands import Run


def test_flags_are_set_shown_and_cleared(run: Run, opened: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WRITERS, "test.low", Writer("test.low", "goes to Postgres only", ceiling="pg"))  # type: ignore[arg-type]
    dataset = opened.create_dataset("a.b.c", {"id": "long"})
    dataset.write([{"id": 1}])
    shadow = ("flags", "set", "reader", "api.read", "shadow", "--dataset", dataset.name)
    planned = run(*shadow, "--dry-run")
    assert "1. set reader api.read for a.b.c to shadow (was: not set)" in planned.out and planned.code == 0
    assert run("flags", "set", "writer", "run.output", "dual").code == 0
    assert run(*shadow).out.splitlines()[0] == "reader api.read of a.b.c is shadow"
    assert run(*shadow).out == "nothing to do: it was so before\n"
    states = run("flags", "list", "--output", "json").document["flags"]
    assert [(each["name"], each["value"], each["dataset"]) for each in states if each["source"] != "default"] == [
        ("run.output", "dual", None),
        ("api.read", "shadow", "a.b.c"),
    ]
    shown = run("flags", "list", "--dataset", dataset.name).out
    assert "route of a.b.c" in shown and "shadow" in shown
    planned = run("flags", "clear", "reader", "api.read", "--dataset", dataset.name, "--dry-run")
    assert "1. clear reader api.read for a.b.c (was: shadow)" in planned.out
    assert "has its flag no more" in run("flags", "clear", "reader", "api.read", "--dataset", dataset.name).out
    refused = run("flags", "set", "writer", "ingest.api", "iceberg_native", "--dataset", dataset.name)
    assert refused.code == 1 and "Next: lakeward flip start a.b.c --to iceberg" in refused.err
    above = run("flags", "set", "writer", "test.low", "dual")
    assert above.code == 2 and "the ceiling of writer test.low is pg" in above.err
