"""What the command line alone can tell is told before a workspace is made or a server is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import Run

NOBODY = "postgresql://nobody@127.0.0.1:1/nothing"
"""Whoever asks it fails with another error."""


@pytest.mark.parametrize(
    ("arguments", "says", "leads_on"),
    [
        ("dataset import a.b.c t.csv --mode upsrt", "unknown write mode 'upsrt'", "did you mean upsert?"),
        ("dataset import a.b.c t.csv --arm iceburg", "unknown arm 'iceburg'", "did you mean iceberg?"),
        ("dataset create a.b.c --columns id:long --arm duck", "unknown arm 'duck'", "name one of them"),
        ("source sync shop --mode ful", "unknown sync mode 'ful'", "did you mean full?"),
        ("source sync shop --arm postgre", "unknown arm 'postgre'", "did you mean postgres?"),
        ("run select --into a.b.c --arm ice", "unknown arm 'ice'", "did you mean iceberg?"),
    ],
)
def test_an_unknown_name_is_refused_before_a_server_is_asked(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, says: str, leads_on: str
) -> None:
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", NOBODY)
    ran = run(*arguments.split())
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err and "Safe: nothing was changed" in ran.err and f"Next: {leads_on}" in ran.err
    assert not (place.parent / "home").exists()
