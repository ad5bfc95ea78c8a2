"""Where a workspace without a home spills: in one directory for all of them, so that the next one tidies up there."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from lakeward.wiring.places import scratch_below


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that is theirs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"lakeward-{os.geteuid()}"


def test_workspaces_without_a_home_share_one(shared: Path) -> None:
    with ExitStack() as undo:
        assert scratch_below(None, undo) == scratch_below(None, undo) == shared
    assert shared.stat().st_mode & 0o777 == 0o700
    with ExitStack() as undo:
        assert scratch_below(shared / "home", undo) == shared / "home" / "scratch"


@pytest.mark.parametrize("kind", ["open to others", "a link", "a file"])
def test_what_is_not_ours_alone_is_not_used(shared: Path, kind: str) -> None:
    """Somebody may have made it to read along; then it is a new one, which goes at the end."""
    if kind == "a link":
        (elsewhere := shared.with_name("elsewhere")).mkdir(mode=0o700)
        shared.symlink_to(elsewhere)
    elif kind == "a file":
        shared.write_text("")
    else:
        shared.mkdir()
        shared.chmod(0o755)
    with ExitStack() as undo:
        scratch = scratch_below(None, undo)
        assert scratch != shared and scratch.is_dir()
    assert not scratch.exists()
