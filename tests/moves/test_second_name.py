"""Where the catalog can't rename, a table gets its new name beside the old one; no row, file or commit is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pyiceberg.table import Table

import lakeward
from lakeward.clock import Faults
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.moves import Relocation
from lakeward.errors import LeaseLost, MoveRefused
from lakeward.storage.arms.iceberg import trouble
from lakeward.storage.arms.iceberg.second_name import TRIES
from lakeward.testing import raise_at
from lakeward.testing.faults import AtStep
from lakeward.testing.faulty_proxy import FAULTS, FaultyProxy
from lakeward.testing.rest_catalog import Habits, RestCatalogServer
from lakeward.wiring.catalog_checks import catalog_checks
from support.moves import COLUMNS, finished_and_taken_back, to_its_home, warehouse_files

# It deletes files with a name unless it is told not to: each test here would lose its rows.
WITHOUT_RENAME = Habits(renames=False, deletes="unless_forbidden")

Opens = Callable[..., lakeward.Workspace]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalogServer]:
    root = tmp_path_factory.mktemp("second")
    with RestCatalogServer(f"sqlite:///{root / 'catalog.db'}", root / "warehouse", habits=WITHOUT_RENAME) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(server: RestCatalogServer) -> Iterator[FaultyProxy]:
    with FaultyProxy(server.url) as running:
        yield running


@pytest.fixture(scope="module")
def reopen(postgres: EmbeddedPostgres, proxy: FaultyProxy, tmp_path_factory: pytest.TempPathFactory) -> Opens:
    """Opens the one workspace of this module again, with faults or without."""
    root = tmp_path_factory.mktemp("second_home")
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier("second_names")))
    settings = root / "lakeward.toml"
    settings.write_text("[iceberg]\nborn_in_place = false\n", encoding="utf-8")

    def opened(faults: Faults | None = None) -> lakeward.Workspace:
        return lakeward.open(
            database_url=postgres.url.replace("/lakeward?", "/second_names?", 1),
            warehouse=root / "warehouse",
            catalog={"type": "rest", "uri": proxy.url},
            settings_file=settings,
            faults=faults,
        )

    return opened


@pytest.fixture(scope="module")
def workspace(reopen: Opens) -> Iterator[lakeward.Workspace]:
    with reopen() as opened:
        yield opened


@pytest.fixture
def dataset(
    workspace: lakeward.Workspace, proxy: FaultyProxy, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[lakeward.Dataset]:
    """A dataset with two rows whose table is in the legacy namespace."""
    monkeypatch.setattr(trouble, "PAUSES", tuple(pause / 20 for pause in trouble.PAUSES))
    made = workspace.create_dataset(
        f'second.names."{request.node.name}"', columns=COLUMNS, primary_key=["id"], arm="iceberg"
    )
    made.write([{"id": 1, "note": "a"}, {"id": 2, "note": "b"}], mode="append")
    yield made
    proxy.clear()


def move(dataset: lakeward.Dataset, workspace: lakeward.Workspace) -> str:
    return workspace.moving.move(workspace.dataset(dataset.name).record, to_its_home(dataset)).way


def names(server: RestCatalogServer, relocation: Relocation) -> list[str]:
    """Say under which of its two names a table is in the catalog."""
    found = {"old": relocation.source.parts, "new": relocation.target.parts}
    return [name for name, parts in found.items() if server.backing.table_exists(parts)]


def by_another_engine(server: RestCatalogServer, parts: tuple[str, ...]) -> Table:
    """Append a row without an identity to a table."""
    table = server.backing.load_table(parts)
    rows = table.scan().to_arrow().slice(0, 1)
    table.append(rows)
    return table.refresh()


def test_moves_there_and_back(
    workspace: lakeward.Workspace, server: RestCatalogServer, proxy: FaultyProxy, dataset: lakeward.Dataset
) -> None:
    files, digest, relocation = warehouse_files(dataset), dataset.digest(), to_its_home(dataset)
    assert move(dataset, workspace) == "register"
    assert dataset.record.identifier == relocation.target and names(server, relocation) == ["new"]
    assert warehouse_files(dataset) == files and dataset.digest() == digest
    dataset.write([{"id": 1, "note": "new"}, {"id": 3, "note": "c"}], mode="upsert")
    workspace.moving.move(dataset.record, relocation.back())
    assert names(server, relocation) == ["old"]
    assert sorted(dataset.to_arrow()["note"].to_pylist()) == ["b", "c", "new"]
    assert dataset.to_arrow(version=1).num_rows == 2
    drops = [each.target for each in proxy.seen if each.method == "DELETE" and "/tables/" in each.target]
    assert drops and all(each.endswith("?purgeRequested=false") for each in drops)


@pytest.mark.parametrize("fault", ["500-after", "500-before", "resent"])
@pytest.mark.parametrize(("method", "path"), [("POST", r"/register$"), ("DELETE", r"/tables/")])
def test_a_bad_answer_is_survived(
    workspace: lakeward.Workspace,
    server: RestCatalogServer,
    proxy: FaultyProxy,
    dataset: lakeward.Dataset,
    fault: str,
    method: str,
    path: str,
) -> None:
    relocation, digest = to_its_home(dataset), dataset.digest()
    injection = proxy.inject(FAULTS[fault], method=method, path=path)
    assert move(dataset, workspace) == "register" and injection.hits
    assert names(server, relocation) == ["new"] and dataset.digest() == digest


@pytest.mark.parametrize("point", ["move:registered", "move:proved"])
def test_what_another_engine_commits_meanwhile_is_kept(
    reopen: Opens, server: RestCatalogServer, dataset: lakeward.Dataset, point: str
) -> None:
    relocation = to_its_home(dataset)
    seen: list[Table] = []
    faults = AtStep(point, lambda: seen.append(by_another_engine(server, relocation.source.parts)))
    with reopen(faults) as other:
        move(dataset, other)
    assert names(server, relocation) == ["new"]
    moved = server.backing.load_table(relocation.target.parts)
    assert moved.current_snapshot() == seen[0].current_snapshot() and moved.scan().to_arrow().num_rows == 3


def test_a_table_that_never_comes_to_rest_stays_where_it_is(
    reopen: Opens, server: RestCatalogServer, dataset: lakeward.Dataset
) -> None:
    relocation = to_its_home(dataset)

    class Restless:
        def at(self, step: str) -> None:
            if step == "move:proved":
                by_another_engine(server, relocation.source.parts)

    with reopen(Restless()) as other, pytest.raises(MoveRefused, match="went on writing"):
        move(dataset, other)
    assert names(server, relocation) == ["old"] and dataset.record.identifier == relocation.source
    assert server.backing.load_table(relocation.source.parts).scan().to_arrow().num_rows == 2 + TRIES
    assert dataset.to_arrow().num_rows == 2


def test_who_wakes_up_before_its_drop_leaves_a_table_that_was_moved_back(
    reopen: Opens, workspace: lakeward.Workspace, server: RestCatalogServer, dataset: lakeward.Dataset
) -> None:
    """Stopped after its last look, while it held the lock; then others finish the move, and take it back."""
    relocation = to_its_home(dataset)
    with reopen(AtStep("move:unname", lambda: finished_and_taken_back(workspace, dataset, relocation))) as other:
        with pytest.raises(LeaseLost, match="was taken over"):
            move(dataset, other)
    assert names(server, relocation) == ["old"] and dataset.to_arrow().num_rows == 2


@pytest.mark.parametrize("both", [False, True])
def test_whoever_writes_to_the_new_name_loses_nothing(
    reopen: Opens, workspace: lakeward.Workspace, server: RestCatalogServer, dataset: lakeward.Dataset, both: bool
) -> None:
    """Cut short with two names, the new one is written to by another engine, or each of them is."""
    relocation = to_its_home(dataset)
    with reopen(raise_at("move:proved", KeyboardInterrupt())) as other, pytest.raises(KeyboardInterrupt):
        move(dataset, other)
    by_another_engine(server, relocation.target.parts)
    if both:
        by_another_engine(server, relocation.source.parts)
    assert [each.outcome for each in workspace.recover()] == ["aborted" if both else "moved"]
    assert names(server, relocation) == (["old", "new"] if both else ["new"])
    assert server.backing.load_table(relocation.target.parts).scan().to_arrow().num_rows == 3


def test_files_that_can_not_be_read_through_the_new_name_refuse_it(
    workspace: lakeward.Workspace, server: RestCatalogServer, dataset: lakeward.Dataset
) -> None:
    relocation = to_its_home(dataset)
    [file] = (path for path in warehouse_files(dataset) if path.suffix == ".parquet")
    hidden = file.rename(file.with_suffix(".hidden"))
    with pytest.raises(MoveRefused, match="can't be read"):
        move(dataset, workspace)
    hidden.rename(file)
    assert names(server, relocation) == ["old"] and dataset.to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("habits", "why"),
    [
        (Habits(renames=False, registers="never"), "neither rename tables nor register"),
        (Habits(renames=False, registers="anew"), "neither rename tables nor register"),
        (Habits(renames=False, deletes="always"), "neither rename tables nor drop"),
    ],
)
def test_a_catalog_that_can_do_neither_is_left_alone(
    reopen: Opens, server: RestCatalogServer, proxy: FaultyProxy, dataset: lakeward.Dataset, habits: Habits, why: str
) -> None:
    relocation = to_its_home(dataset)
    server.habits = habits
    try:
        with reopen() as other:
            found = other.storage.routing.arm("iceberg").receiver().catalog(probe=True)
            assert found.abilities is not None and found.abilities.ways == ()
            asked = len(proxy.seen)
            with pytest.raises(MoveRefused, match=why):
                move(dataset, other)
            assert {each.method for each in proxy.seen[asked:]} == {"GET"}
    finally:
        server.habits = WITHOUT_RENAME
        with reopen() as other:
            other.storage.routing.arm("iceberg").receiver().catalog(probe=True)
    assert names(server, relocation) == ["old"] and dataset.to_arrow().num_rows == 2
    assert Path(server.backing.load_table(relocation.source.parts).metadata_location.removeprefix("file://")).exists()


def test_doctor_tells_what_the_catalog_can_do_and_which_table_has_two_names(
    reopen: Opens, workspace: lakeward.Workspace, server: RestCatalogServer, dataset: lakeward.Dataset
) -> None:
    relocation = to_its_home(dataset)
    move(dataset, workspace)
    before = [each.detail for each in catalog_checks(workspace, probe=False) if each.name != "catalog"]
    assert not [detail for detail in before if dataset.name in detail]
    moved = server.backing.load_table(relocation.target.parts)
    server.backing.register_table(relocation.source.parts, moved.metadata_location)
    catalog, *twice = catalog_checks(workspace, probe=False)
    (names_,) = [each for each in twice if dataset.name in each.detail]
    assert "lacks rename" in catalog.detail and "moved by register" in catalog.detail
    assert not names_.ok and str(relocation.source) in names_.detail
    server.backing.drop_table(relocation.source.parts)
