"""Workspaces whose new tables are born in the legacy namespace, from where they can be moved."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.cli.app import main
from lakeward.clock import Faults
from lakeward.control.embedded import EmbeddedPostgres
from support.commands import Ran, Run
from support.crashes import Driver
from support.databases import WORKSPACE, made_database
from support.moves import COLUMNS, Make


@pytest.fixture(scope="session")
def moves_url(postgres: EmbeddedPostgres) -> str:
    """A database for all tests of this directory."""
    return made_database(postgres, WORKSPACE)


@pytest.fixture(scope="session")
def moves_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the one workspace of this directory is."""
    return tmp_path_factory.mktemp("moves")


@pytest.fixture(scope="session")
def opens(moves_url: str, moves_root: Path) -> Callable[..., lakeward.Workspace]:
    """Opens the one workspace of this directory again, with faults or other settings of `[iceberg]` or without."""

    def opened(faults: Faults | None = None, iceberg: str = "born_in_place = false") -> lakeward.Workspace:
        settings = moves_root / f"{hashlib.md5(iceberg.encode()).hexdigest()}.toml"
        settings.write_text(f"[iceberg]\n{iceberg}\n", encoding="utf-8")
        return lakeward.open(
            moves_root / "home",
            database_url=moves_url,
            warehouse=moves_root / "warehouse",
            settings_file=settings,
            faults=faults,
        )

    return opened


@pytest.fixture(scope="session")
def workspace(opens: Callable[..., lakeward.Workspace]) -> Iterator[lakeward.Workspace]:
    """The workspace that most tests share."""
    with opens() as opened:
        yield opened


@pytest.fixture
def legacy(workspace: lakeward.Workspace, request: pytest.FixtureRequest) -> lakeward.Dataset:
    """A dataset with two rows whose table is in the legacy namespace, by the name of the test."""
    name = f'{request.module.__name__.rpartition(".")[2]}.legacy."{request.node.name}"'
    made = workspace.create_dataset(name, columns=COLUMNS, primary_key=["id"], arm="iceberg")
    made.write([{"id": 1, "note": "a"}, {"id": 2, "note": "b"}], mode="append")
    return made


@pytest.fixture
def make(workspace: lakeward.Workspace) -> Make:
    """Makes a dataset with two rows whose table is in the legacy namespace."""

    def made(name: str) -> lakeward.Dataset:
        dataset = workspace.create_dataset(name, columns=COLUMNS, primary_key=["id"], arm="iceberg")
        dataset.write([{"id": 1, "note": "a"}, {"id": 2, "note": "b"}], mode="append")
        return dataset

    return made


@pytest.fixture(scope="session")
def environment(moves_url: str, moves_root: Path) -> dict[str, str]:
    """What names the one workspace of this directory to commands."""
    return {
        "LAKEWARD_HOME": str(moves_root / "home"),
        "LAKEWARD_DATABASE_URL": moves_url,
        "LAKEWARD_WAREHOUSE": str(moves_root / "warehouse"),
    }


@pytest.fixture
def shell(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that commands run in, on that workspace."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(shell: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `lakeward …` in this process, on that workspace."""

    def call(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def driver(workspace: lakeward.Workspace, moves_url: str, moves_root: Path) -> Iterator[Driver]:
    """Forks processes that move and are killed or stopped on the way."""
    with Driver(moves_url, moves_root / "warehouse") as running:
        yield running
