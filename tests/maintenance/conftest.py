"""One workspace that keeps few versions and has short leases, and a way to let its past grow old."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.clock import Faults
from lakeward.control.embedded import EmbeddedPostgres
from support.compaction import compaction_settings
from support.crashes import Driver
from support.databases import WORKSPACE, made_database
from support.past import KEPT, Past

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kept_url(postgres: EmbeddedPostgres) -> str:
    """The database of the tests of maintenance."""
    return made_database(postgres, WORKSPACE)


@pytest.fixture(scope="session")
def kept_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the warehouse and of the settings file."""
    root = tmp_path_factory.mktemp("maintenance")
    # Compaction makes versions of its own; it has its own tests.
    settings = f"[ledger]\nlease_seconds = 1\n[retention]\nversions = {KEPT}\n[compaction]\nmode = 'off'\n"
    (root / "lakeward.toml").write_text(settings, encoding="utf-8")
    return root


@pytest.fixture(scope="session")
def ws(kept_url: str, kept_root: Path) -> Iterator[lakeward.Workspace]:
    """The workspace."""
    with lakeward.open(
        kept_root / "home",
        database_url=kept_url,
        warehouse=kept_root / "warehouse",
        settings_file=kept_root / "lakeward.toml",
    ) as workspace:
        yield workspace


@pytest.fixture(scope="session")
def compacting(kept_url: str, kept_root: Path) -> Iterator[Callable[..., lakeward.Workspace]]:
    """Opens further workspaces on the same database that do compact: in this mode, and with these faults."""
    opened: list[lakeward.Workspace] = []

    def make(mode: str, faults: Faults | None = None, more: str = "") -> lakeward.Workspace:
        file = compaction_settings(kept_root, mode, more)
        opened.append(
            lakeward.open(
                kept_root / "home",
                database_url=kept_url,
                warehouse=kept_root / "warehouse",
                settings_file=file,
                faults=faults,
            )
        )
        return opened[-1]

    yield make
    for workspace in opened:
        workspace.close()


@pytest.fixture(scope="session")
def driver(ws: lakeward.Workspace, kept_url: str, kept_root: Path) -> Iterator[Driver]:
    """Forks processes in that workspace."""
    with Driver(kept_url, kept_root / "warehouse") as running:
        yield running


@pytest.fixture
def past(ws: lakeward.Workspace) -> Callable[..., Past]:
    """Makes a dataset on an arm, with one version for each write mode given."""

    def make(arm: str, *modes: str, name: str | None = None) -> Past:
        full = name or f"main.past.d{next(_numbers)}"
        dataset = ws.create_dataset(full, {"id": "long", "note": "string"}, ["id"], arm=arm)
        made = Past(ws, dataset, {})
        made.grow(*modes)
        return made

    return make
