"""House style as a test: every ban names what to write instead, and a ratchet that only tightens holds the exceptions.

The bans stand in `tests/house_style.py`.
"""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

import pytest

from house_style import BANS, ROOT, Ban, Source, example

# (ban, file): (how many, why it is right there). A count that no longer fits fails in both directions, so that a mended
# place can't be broken again unseen.
RATCHET: dict[tuple[str, str], tuple[int, str]] = {
    ("broad-except", "src/lakeward/storage/protocol.py"): (
        1,
        (
            "removing what a failed build prepared: the build's own error is raised, whatever the removal meets; it is "
            "logged, and recovery removes the rest"
        ),
    ),
    ("broad-except", "src/lakeward/storage/compaction.py"): (
        1,
        (
            "a compaction after a write: the write is committed, and its caller must not be told that it failed, "
            "whatever the compaction meets; it is logged, and tried again"
        ),
    ),
    ("broad-except", "src/lakeward/storage/mirror_step.py"): (
        2,
        (
            "a mirror that fails must not fail the write, whatever it meets: it is logged, recorded with the version "
            "and shown as behind; so for what it leaves, which goes before the mirror is written again"
        ),
    ),
    ("broad-except", "src/lakeward/storage/comparison.py"): (
        2,
        (
            "threads beside a reader that compare what it gets with another arm: whatever they meet must not reach the "
            "reader; it is logged, counted and written down as a comparison that failed"
        ),
    ),
    ("broad-except", "src/lakeward/storage/maintenance.py"): (
        1,
        "a dataset of which something is wrong must not keep the others from maintenance: it is logged and reported",
    ),
    ("broad-except", "src/lakeward/testing/cooperative.py"): (
        1,
        "an actor of a simulation ends in its own thread: what it raised is kept and judged by the scheduler",
    ),
    ("broad-except", "src/lakeward/testing/drill/worker.py"): (
        1,
        "a drill's writer answers its driver with whatever a write raised, which judges it",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def no_search_for_garbage() -> Iterator[None]:
    """The trees of a thousand files are all kept: to look through them for garbage took longer than to make them."""
    gc.disable()
    yield
    sources.cache_clear()
    gc.enable()


@cache
def sources() -> tuple[Source, ...]:
    """Every Python file of the tree, tracked yet or not, and every other text file that git tracks."""
    python = {path for top in ("src", "tests", "bench") for path in (ROOT / top).rglob("*.py")}
    # safe.directory: the tree may belong to another user than the one who tests it.
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False
    )
    tracked = {ROOT / name for name in listing.stdout.decode().split("\0") if name}
    found = []
    for path in sorted(python | tracked):
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # binary, or removed but not yet committed
        found.append(Source(PurePosixPath(path.relative_to(ROOT).as_posix()), text))
    return tuple(found)


def verdict(ban: Ban, source: Source) -> list[str]:
    """Return complaints about one file: findings above the ratchet, or a ratchet that may be tightened."""
    findings = list(ban.find(source))
    allowed, _ = RATCHET.get((ban.name, str(source.path)), (0, ""))
    if len(findings) > allowed:
        return [f"{source.path}:{line}: {what}" for line, what in findings]
    if len(findings) < allowed:
        return [f"{source.path}: RATCHET allows {allowed}, only {len(findings)} are left: lower it"]
    return []


@pytest.mark.parametrize("ban", BANS, ids=lambda ban: ban.name)
def test_ban_is_kept(ban: Ban) -> None:
    complaints = [line for source in sources() if ban.applies(source) for line in verdict(ban, source)]
    if complaints:
        pytest.fail("\n".join([f"{ban.name}. Instead: {ban.instead}.", *complaints]), pytrace=False)


@pytest.mark.parametrize("ban", BANS, ids=lambda ban: ban.name)
def test_ban_finds_its_example_and_nothing_else(ban: Ban) -> None:
    assert ban.applies(ban.bad) and ban.applies(ban.good)
    assert list(ban.find(ban.bad))
    assert not list(ban.find(ban.good))


def test_ratchet_names_bans_and_files_that_exist() -> None:
    bans = {ban.name for ban in BANS}
    paths = {str(source.path) for source in sources()}
    stale = [key for key, (_, reason) in RATCHET.items() if key[0] not in bans or key[1] not in paths or not reason]
    assert not stale, f"remove from RATCHET, or give a reason: {stale}"


def test_ratchet_tightens(monkeypatch: pytest.MonkeyPatch) -> None:
    ban = next(ban for ban in BANS if ban.name == "return-type")
    monkeypatch.setitem(RATCHET, (ban.name, str(ban.bad.path)), (1, "an example"))
    assert verdict(ban, ban.bad) == []
    assert "lower it" in verdict(ban, ban.good)[0]
    assert verdict(ban, example("def f(): ...\ndef g(): ...\n"))


def test_the_tree_is_seen() -> None:
    seen = {str(source.path) for source in sources()}
    assert {"src/lakeward/errors.py", "tests/unit/test_tidy.py"} <= seen
