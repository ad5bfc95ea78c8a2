"""Many tables are moved, killed in the middle and resumed: each is there all the time, once, with its rows."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import lakeward
from lakeward.control.identifiers import home
from lakeward.storage.moving import POINTS
from support.commands import Run, process
from support.crashes import Driver, unclean
from support.moves import (
    COLUMNS,
    Make,
    Poller,
    catalog_of,
    names_in,
    rows_by_pyiceberg,
    to_its_home,
    warehouse_files,
)

LEASE_SECONDS = "0.6"


@pytest.fixture
def catalog(workspace: lakeward.Workspace) -> SqlCatalog:
    return catalog_of(workspace)


def writes(dataset: lakeward.Dataset) -> list[tuple[int, object, object]]:
    """Return what its history has of each write: version, when, and how many rows."""
    return [(each.version, each.committed_at, each.row_count) for each in dataset.history() if each.kind == "write"]


def outcomes(workspace: lakeward.Workspace, *names: str) -> list[tuple[str, str | None]]:
    return [(each.outcome, each.reason) for each in workspace.moves.apply(*names)]


def test_fifty_are_swept_with_a_kill_in_the_middle(
    workspace: lakeward.Workspace, catalog: SqlCatalog, make: Make, shell: Path, rng: random.Random
) -> None:
    datasets = [make(f"fifty.{schema}.d{number}") for number in range(25) for schema in ("north", "south")]
    moves = {dataset.name: to_its_home(dataset) for dataset in datasets}
    before = {dataset.name: (dataset.digest(), writes(dataset), warehouse_files(dataset)) for dataset in datasets}
    assert len({dataset.locate()["iceberg"]["location"] for dataset in datasets}) == 50
    looks = [
        look
        for dataset in rng.sample(datasets, 50)
        for look in (
            lambda dataset=dataset: dataset.to_arrow(columns=["id"]).num_rows,
            lambda move=moves[dataset.name]: rows_by_pyiceberg(catalog, move),
        )
    ]
    sweep = ("move", "apply", "fifty.north", "fifty.south")
    with Poller(looks, 0.05) as reader:
        killed = process(*sweep)
        assert killed.stdout is not None
        for _ in range(rng.randrange(5, 30)):
            assert ": moved from datasets." in killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        assert killed.returncode == -signal.SIGKILL
        names = [names_in(catalog, moves[dataset.name]) for dataset in datasets]
        assert names.count(["new"]) >= 5 and all(len(each) == 1 for each in names)
        resumed = process(*sweep, "--output", "json")
        document = json.loads(resumed.communicate()[0])
        assert resumed.returncode == 0
    assert set(reader.seen) == {2} and len(reader.seen) > 20
    assert (document["moved"] + document["done"], document["failed"]) == (50, 0)
    assert document["done"] >= 5
    after = document["namespaces"]["after"]
    assert (after["fifty.north"], after["fifty.south"]) == (25, 25)
    for dataset in datasets:
        assert names_in(catalog, moves[dataset.name]) == ["new"]
        assert (dataset.digest(), writes(dataset), warehouse_files(dataset)) == before[dataset.name]
        assert dataset.record.identifier == home(dataset.record.slugs)
    assert unclean(workspace, [datasets[0].name, datasets[-1].name]) == []


@pytest.mark.parametrize("point", POINTS)
def test_a_command_that_was_killed_is_repeated(
    workspace: lakeward.Workspace,
    catalog: SqlCatalog,
    driver: Driver,
    make: Make,
    run: Run,
    environment: dict[str, str],
    point: str,
) -> None:
    names = [f"killed.{point.partition(':')[2]}.{name}" for name in ("a", "b", "c")]
    datasets = [make(name) for name in names]
    moves = [to_its_home(dataset) for dataset in datasets]
    before = [(dataset.digest(), writes(dataset), warehouse_files(dataset)) for dataset in datasets]
    sweep = ["move", "apply", names[0].rpartition(".")[0]]
    died = driver.run(command=sweep, environment=environment, fault=["crash", point, 2])
    assert died.killed(), died.event
    assert [len(names_in(catalog, move)) for move in moves] == [1, 1, 1]
    assert [dataset.digest() for dataset in datasets] == [digest for digest, _, _ in before]
    again = run(*sweep, "--output", "json").document
    done = 2 if point == "move:finished" else 1
    assert (again["done"], again["moved"], again["failed"]) == (done, 3 - done, 0)
    assert [names_in(catalog, move) for move in moves] == [["new"]] * 3
    assert [(each.digest(), writes(each), warehouse_files(each)) for each in datasets] == before
    assert unclean(workspace, [names[1]]) == []


def test_a_mover_that_wakes_up_late_changes_nothing(
    workspace: lakeward.Workspace,
    catalog: SqlCatalog,
    driver: Driver,
    make: Make,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    dataset = make("late.movers.d")
    move, digest = to_its_home(dataset), dataset.digest()
    slow = driver.run(
        command=["move", "apply", "late.movers", "--retry-file", str(tmp_path / "retry.toml")],
        environment={**environment, "LAKEWARD_LEDGER__LEASE_SECONDS": LEASE_SECONDS},
        fault=["pause", "move:begun", 1],
    )
    assert slow.event == "stopped"
    assert outcomes(workspace, "late.movers") == [("moved", None)]
    assert [each.outcome for each in workspace.moves.undo("late.movers")] == ["moved"]
    assert slow.wake() == {"code": 6}
    assert dataset.record.identifier == move.source and names_in(catalog, move) == ["old"]
    assert dataset.digest() == digest and unclean(workspace, [dataset.name]) == []


def test_two_sweeps_at_once_share_the_work(workspace: lakeward.Workspace, catalog: SqlCatalog, make: Make) -> None:
    datasets = [make(f"two.sweeps.{name}") for name in ("a", "b", "c", "d")]
    moves = [to_its_home(dataset) for dataset in datasets]
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(outcomes, workspace, "two.sweeps") for _ in range(2)]
        found = [outcome for each in both for outcome in each.result()]
    assert len(found) == 8 and set(found) <= {("moved", None), ("done", None)}
    with workspace.database.driver() as connection:
        done = connection.execute(
            "SELECT count(*) FROM lakeward.table_moves WHERE done_at IS NOT NULL AND dataset_id = ANY(%s)",
            ([dataset.record.id for dataset in datasets],),
        ).fetchone()
    assert done == (4,) and [names_in(catalog, move) for move in moves] == [["new"]] * 4
    assert [dataset.to_arrow().num_rows for dataset in datasets] == [2] * 4


def test_writers_wait_and_then_write_to_the_new_place(
    workspace: lakeward.Workspace,
    catalog: SqlCatalog,
    driver: Driver,
    make: Make,
    environment: dict[str, str],
    shell: Path,
) -> None:
    dataset = make("waiting.writers.d")
    move = to_its_home(dataset)
    stopped = driver.run(
        command=["move", "apply", dataset.name], environment=environment, fault=["pause", "move:relocated", 1]
    )
    (shell / "more.csv").write_text("id,note\n4,d\n", encoding="utf-8")
    with ThreadPoolExecutor(1) as pool:
        here = pool.submit(dataset.write, [{"id": 3, "note": "c"}], "append")
        there = process("dataset", "import", dataset.name, "more.csv", "--mode", "append")
        with Poller([lambda: dataset.to_arrow().num_rows]) as reader:
            wait_until(lambda: in_line(workspace, dataset) == 2)
        assert set(reader.seen) == {2} and not here.done() and there.poll() is None
        assert stopped.wake() == {"code": 0}
        assert here.result().version and there.wait() == 0
    assert names_in(catalog, move) == ["new"] and dataset.record.identifier == move.target
    assert sorted(dataset.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert rows_by_pyiceberg(catalog, move) == 4


def wait_until(true: Callable[[], bool]) -> None:
    """Look again and again, for two minutes at most."""
    never = threading.Event()
    for _ in range(120 * 20):
        if true():
            return
        never.wait(0.05)
    raise AssertionError("it did not happen")


def in_line(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> int:
    with workspace.database.driver() as connection:
        found = connection.execute(
            "SELECT count(*) FROM lakeward.slot_waiters WHERE dataset_id = %s AND alive_until > clock_timestamp()",
            (dataset.record.id,),
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_the_second_of_three_fails_and_is_retried(
    workspace: lakeward.Workspace, catalog: SqlCatalog, make: Make, run: Run, shell: Path
) -> None:
    datasets = [make(f"three.tables.{name}") for name in ("a", "b", "c")]
    moves = [to_its_home(dataset) for dataset in datasets]
    catalog.create_namespace_if_not_exists(moves[1].target.namespace[:1])
    catalog.create_namespace_if_not_exists(moves[1].target.namespace)
    schema = catalog.load_table(moves[1].source.parts).schema()
    other = catalog.create_table(moves[1].target.parts, schema, location=f"file://{shell}/other")
    planned = run("move", "plan", "three.tables")
    assert planned.code == 3
    assert "three.tables.b: can't be moved now: another table is called three.tables.b" in planned.out
    swept = run("move", "apply", "three.tables")
    assert swept.code == 6
    assert "three.tables.b: failed: the table of dataset three.tables.b can't be moved" in swept.out
    assert "Next: lakeward move apply --plan lakeward-moves-retry.toml" in swept.out
    assert [names_in(catalog, moves[number]) for number in (0, 2)] == [["new"], ["new"]]
    assert catalog.load_table(moves[1].target.parts).metadata.table_uuid == other.metadata.table_uuid
    assert datasets[1].to_arrow().num_rows == 2
    catalog.drop_table(moves[1].target.parts)
    assert run("move", "apply", "--plan", "lakeward-moves-retry.toml", "--dry-run").out.splitlines()[0] == (
        f"1. three.tables.b: give table {moves[1].source} the name three.tables.b in the catalog"
    )
    retried = run("move", "apply", "--plan", "lakeward-moves-retry.toml")
    assert (retried.code, names_in(catalog, moves[1])) == (0, ["new"])


def test_there_and_back_and_there_again(
    workspace: lakeward.Workspace, catalog: SqlCatalog, make: Make, run: Run, shell: Path
) -> None:
    dataset = make("back.again.thing")
    move = to_its_home(dataset)
    digest, past, files = dataset.digest(), writes(dataset), warehouse_files(dataset)
    expected = [("apply", "new"), ("apply", "new"), ("undo", "old"), ("undo", "old"), ("apply", "new")]
    for verb, name in expected:
        assert run("move", verb, "back.again").code == 0
        assert names_in(catalog, move) == [name]
        assert (dataset.digest(), writes(dataset), warehouse_files(dataset)) == (digest, past, files)
    taken = catalog.create_table(
        move.source.parts, catalog.load_table(move.target.parts).schema(), location=f"file://{shell}/taken"
    )
    assert run("move", "undo", "back.again", "--dry-run", "--output", "json").document["warnings"]
    refused = run("move", "undo", "back.again")
    assert refused.code == 6 and "another table has that name" in refused.out
    assert "Next: lakeward move undo back.again" in refused.out
    assert catalog.load_table(move.source.parts).metadata.table_uuid == taken.metadata.table_uuid
    assert (dataset.record.identifier, dataset.digest()) == (move.target, digest)
    catalog.drop_table(move.source.parts)


ODD = {"a.b": 1, "two words": 2, 'q"x': 3, "1st": 4, "select": 5, "🚲": 6, "a/b": 7}
NAMES = [
    'odd."x.y"."one.two"',
    "Sales EU.s.Straße 🚲",
    "Sales-EU.s.STRASSE",
    "%.().select",
    f"long.s.{'é' * 40}",
    f"long.s.{'x' * 70}1",
    f"long.s.{'x' * 70}2",
    'quo.s."a""b # c = \'d\'"',
]


def test_odd_names_are_moved_by_list_and_written_afterwards(
    workspace: lakeward.Workspace, catalog: SqlCatalog, run: Run, shell: Path
) -> None:
    made = []
    for name in NAMES:
        dataset = workspace.create_dataset(name, dict.fromkeys(ODD, "long"), ["a.b"], arm="iceberg")
        dataset.write([ODD], mode="append")
        made.append(dataset)
    assert run("move", "plan", *NAMES, "--file", "list.toml").code == 3
    assert run("move", "apply", "--plan", "list.toml", "--output", "json").document["moved"] == len(NAMES)
    places = [dataset.record.identifier for dataset in made]
    assert places == [home(dataset.record.slugs) for dataset in made] and len(set(places)) == len(NAMES)
    assert len({dataset.locate()["iceberg"]["location"] for dataset in made}) == len(NAMES)
    made[0].write([{**ODD, "select": 50}], mode="upsert")
    for dataset in made:
        (row,) = dataset.to_arrow().to_pylist()
        assert row == ({**ODD, "select": 50} if dataset is made[0] else ODD)
        assert set(ODD) <= set(catalog.load_table(dataset.record.identifier.parts).scan().to_arrow().column_names)


def test_what_can_not_be_meant_is_refused(workspace: lakeward.Workspace, run: Run, shell: Path) -> None:
    workspace.create_dataset("refused.s.d", columns=COLUMNS, arm="iceberg")
    assert run("move", "apply").code == 2
    assert "exclude each other" in run("move", "apply", "refused.s", "--all").err
    assert "no schema of that name" in run("move", "apply", "refused.t").err
    assert "no names and no --all beside it" in run("move", "apply", "--all", "--plan", "x.toml").err
    assert "x.toml can't be read" in run("move", "apply", "--plan", "x.toml").err
    nothing = run("move", "plan", "refused.s")
    assert (nothing.code, nothing.out) == (0, "nothing to move\n1 dataset without a table\n")
    (shell / "there.toml").write_text("# mine\n", encoding="utf-8")
    assert "is there already" in run("move", "plan", "refused.s", "--file", "there.toml").err
    away = '[move]\n"refused.s.d" = {from = ["datasets", "d"], to = ["else", "where"]}\n"no.such.d" = '
    (shell / "away.toml").write_text(f'{away}{{from = ["a", "b"], to = ["c", "d"]}}\n', encoding="utf-8")
    failed = run("move", "apply", "--plan", "away.toml", "--retry-file", "/nowhere/retry.toml")
    assert failed.code == 1
    assert "belongs to refused.s.d, and can't be moved to else.where" in failed.out
    assert "unknown dataset no.such.d" in failed.out and "/nowhere/retry.toml can't be written" in failed.out


def test_where_tables_are_is_told(workspace: lakeward.Workspace, make: Make, run: Run) -> None:
    dataset = make("told.s.d")
    outcomes(workspace, "told.s")
    snapshot = dataset.locate()["iceberg"]["snapshot"]
    document = run("move", "status", "told.s", "--output", "json").document
    (told,) = document["tables"]
    assert (told["identifier"], str(told["snapshot_id"]), told["way"]) == (["told", "s", "d"], snapshot, "rename")
    assert document["namespaces"] == {"datasets": {"before": 1, "now": 0}, "told.s": {"before": 0, "now": 1}}
    states = run("status", "--output", "json").document["datasets"]
    (state,) = [each for each in states if each["name"] == "told.s.d"]
    assert (state["table"]["identifier"], state["at_home"]) == (["told", "s", "d"], True)
    assert "told.s.d" in run("move", "status", "told.s.d").out
