"""Names in Postgres: slugs that no client can skip, twins refused at every level, names kept as they are."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

import psycopg
import pytest

from lakeward.control.db import Database
from lakeward.control.names import DatasetName
from lakeward.control.objects import TreeObject
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import InvalidName, LakewardError, NameTaken, UnknownObject
from lakeward.types.schema import Schema
from support.ledger import rows

SCHEMA = Schema.declare({"id": "long", "note": "string"}, ["id"])
SLUG = re.compile(r"[a-z0-9][a-z0-9_]{0,47}")

ODD_NAMES = [
    "Sales EU",
    "orders.2024",
    "emea / north",
    "../../esc",
    "a/../../b",
    "..",
    "/etc/x",
    "file:///x",
    "%2e%2e%2f",
    "C:\\x",
    'x"; drop table t; --',
    'a\\"b',
    "a'b",
    "1) or (1=1",
    "'; select pg_sleep(5); --",
    "%",
    "()",
    ":name %(name)s $1 {}",
    "ship 🚢",
    "日本",
    "שלום",
    "a\u202eb",
    "a\u200bb",
    "\u200b",
    "_leading",
    "é" * 40,
    "x" * 255,
    "é" * 127 + "x",
]


def md5(text: str, digits: int = 8) -> str:
    return hashlib.md5(text.encode()).hexdigest()[:digits]


@pytest.fixture
def any_tree(any_database: Database) -> Tree:
    """The tree of names on each kind of server."""
    return Tree(any_database)


# Kept as they are -----------------------------------------------------------------------------------------------------


def test_s01_s03_odd_names_are_plain_names_at_every_level(any_database: Database, any_tree: Tree) -> None:
    made = [any_tree.create_dataset(DatasetName(name, name, name), SCHEMA) for name in ODD_NAMES]
    for name, record in zip(ODD_NAMES, made, strict=True):
        assert record.path == DatasetName(name, name, name)
        assert all(SLUG.fullmatch(slug) for slug in record.slugs), record.slugs
        assert any_tree.dataset(record.name) == record, "the text form finds it"
        assert any_tree.dataset(DatasetName(*record.slugs)) == record, "the slugs find it"
    assert len({record.slugs[0] for record in made}) == len(ODD_NAMES)
    listed = [record.path for record in any_tree.datasets()]
    assert listed == sorted((record.path for record in made), key=lambda path: path.catalog.encode())
    assert rows(any_database, "SELECT name FROM lakeward.workspaces") == [("default",)], "nothing ran as SQL"


@pytest.mark.parametrize("place", range(3))
def test_name_that_can_not_be_kept_is_refused(any_tree: Tree, place: int) -> None:
    for name in ("", " ", "x" * 256, "é" * 128, " x", "x ", "\u00a0x", "x\u2003", "\u3000", "\u2028x"):
        levels = ["a", "b", "c"]
        levels[place] = name
        with pytest.raises(InvalidName) as caught:
            any_tree.create_dataset(DatasetName(*levels), SCHEMA)
        assert repr(name) in str(caught.value)
    assert any_tree.datasets() == []


def test_other_clients_are_refused_the_same_names(any_database: Database) -> None:
    Tree(any_database)
    with psycopg.connect(any_database.libpq_url, autocommit=True) as connection:
        for name in ("", "a\tb", "a\x01b", "a\x7fb", "a\x85b", " a", "a\u00a0", "é" * 128):
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute("INSERT INTO lakeward.workspaces (name) VALUES (%s)", (name,))
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute("UPDATE lakeward.workspaces SET name = %s", (name,))


# Slugs ----------------------------------------------------------------------------------------------------------------


def client_insert(database: Database, *names: str, slug: str | None = None) -> list[str]:
    """Insert catalogs as another client would, and return their slugs."""
    Tree(database)
    slugs = []
    with psycopg.connect(database.libpq_url, autocommit=True) as connection:
        for name in names:
            found = connection.execute(
                "INSERT INTO lakeward.catalogs (workspace_id, name, slug, name_key)"
                " SELECT id, %s, %s, %s FROM lakeward.workspaces RETURNING slug",
                (name, slug, slug),
            ).fetchone()
            assert found is not None
            slugs.append(found[0])
    return slugs


SLUGS = {
    "Sales EU": "sales_eu",
    "Größe (kg)": "gro_e_kg",
    "Crème brûlée": "creme_brulee",
    "ORDERS": "orders",
    "ÅNGSTRÖM": "angstrom",
    "İstanbul": "istanbul",
    "ﬁle": "file",
    "2024": "2024",
    "__x__": "x",
    "%": "n_" + md5("%"),
    "()": "n_" + md5("()"),
    "日本": "n_" + md5("日本"),
    "x" * 48: "x" * 48,
    "x" * 49: "x" * 39 + "_" + md5("x" * 49),
    "é" * 40: "e" * 40,
}


def test_n02_slugs_are_made_in_the_database_the_same_on_every_server(any_database: Database) -> None:
    assert dict(zip(SLUGS, client_insert(any_database, *SLUGS), strict=True)) == SLUGS


def test_nobody_sets_a_slug_or_key_by_hand(any_database: Database) -> None:
    assert client_insert(any_database, "Sales EU", slug="mine") == ["sales_eu"]
    rows(any_database, "UPDATE lakeward.catalogs SET slug = 'mine', name_key = 'mine'")
    assert rows(any_database, "SELECT slug, name_key FROM lakeward.catalogs") == [("sales_eu", "sales eu")]


def test_slug_stays_when_the_name_changes_and_twins_of_the_new_name_are_refused(
    any_database: Database, any_tree: Tree
) -> None:
    before = any_tree.create_dataset("m.s.orders", SCHEMA)
    rows(any_database, "UPDATE lakeward.datasets SET name = 'Bestellungen 2024'")
    after = any_tree.dataset("m.s.Bestellungen 2024")
    assert (after.id, after.slugs) == (before.id, before.slugs)
    assert any_tree.dataset("m.s.orders").id == before.id, "the slug still finds it"
    with pytest.raises(NameTaken, match="Bestellungen 2024"):
        any_tree.create_dataset("m.s.BESTELLUNGEN 2024", SCHEMA)
    # The old name is free. Its slug is not.
    assert any_tree.create_dataset("m.s.orders", SCHEMA).slugs[2] == f"orders_{md5('orders')}"
    assert any_tree.dataset("m.s.orders").id != before.id, "a name goes before a slug"


def test_n03_two_datasets_with_seventy_equal_leading_characters(any_tree: Tree) -> None:
    names = ["a" * 70 + end for end in ("_one", "_two")]
    made = [any_tree.create_dataset(DatasetName("m", "s", name), SCHEMA) for name in names]
    slugs = [record.slugs[2] for record in made]
    assert slugs == [f"{'a' * 39}_{md5(name)}" for name in names]
    for name, record in zip(names, made, strict=True):
        assert any_tree.dataset(f"m.s.{name}").id == record.id


@pytest.mark.parametrize("names", [("emea.north", "emea / north"), ("emea / north", "emea.north")])
def test_g05_two_names_of_one_slug_get_two_slugs(any_tree: Tree, names: tuple[str, str]) -> None:
    first, second = (any_tree.create_dataset(DatasetName("m", name, "orders"), SCHEMA) for name in names)
    assert first.slugs[1] == "emea_north"
    assert second.slugs[1] == f"emea_north_{md5(names[1])}", "which says nothing of what else there is"
    assert any_tree.dataset(DatasetName("m", names[0], "orders")).id == first.id
    assert any_tree.dataset(DatasetName("m", names[1], "orders")).id == second.id


def test_n02_name_that_is_already_another_ones_disambiguated_slug(any_tree: Tree) -> None:
    names = ["net kg", "net_kg", f"net_kg_{md5('net-kg')}", "net-kg"]
    made = [any_tree.create_dataset(DatasetName("m", "s", name), SCHEMA) for name in names]
    assert [record.slugs[2] for record in made] == [
        "net_kg",
        f"net_kg_{md5('net_kg')}",
        f"net_kg_{md5('net-kg')}",
        f"net_kg_{md5('net-kg', 16)}",
    ]
    for name, record in zip(names, made, strict=True):
        assert any_tree.dataset(DatasetName("m", "s", name)).id == record.id


def test_n03_long_name_whose_slug_is_a_siblings_name(any_tree: Tree) -> None:
    long = "b" * 60
    sibling = any_tree.create_dataset(f"m.s.{'b' * 39}_{md5(long)}", SCHEMA)
    made = any_tree.create_dataset(f"m.s.{long}", SCHEMA)
    assert made.slugs[2] != sibling.slugs[2]
    assert len(made.slugs[2]) <= 48


# Twins ----------------------------------------------------------------------------------------------------------------

TWINS = [
    ("Orders", "orders"),
    ("ÉCLAIR", "éclair"),
    ("e\u0301clair", "\u00e9clair"),
    ("A\u030angstrom", "\u00c5NGSTROM"),
    ("ПРИВЕТ", "привет"),
]


@pytest.mark.parametrize(("name", "twin"), [*TWINS, *((twin, name) for name, twin in TWINS)])
@pytest.mark.parametrize(("place", "level"), [(0, "catalog"), (1, "schema"), (2, "dataset")])
def test_twins_in_case_or_unicode_form_are_refused_by_both_names(
    any_tree: Tree, name: str, twin: str, place: int, level: str
) -> None:
    def path(text: str) -> DatasetName:
        levels = ["a", "b", "c"]
        levels[place] = text
        return DatasetName(*levels)

    any_tree.create_dataset(path(name), SCHEMA)
    if level != "dataset" and twin == any_tree.datasets()[0].slugs[place]:
        # The text is the slug of the catalog or schema, which is therefore meant by it.
        with pytest.raises(NameTaken, match="exists already"):
            any_tree.create_dataset(path(twin), SCHEMA)
        return
    with pytest.raises(NameTaken) as caught:
        any_tree.create_dataset(path(twin), SCHEMA)
    assert str(caught.value).startswith(f"{level} {twin} can't be made: {name} exists")
    assert (caught.value.fields["name"], caught.value.fields["twin"]) == (twin, name)
    assert [record.path for record in any_tree.datasets()] == [path(name)]


def test_equal_names_under_other_parents_are_no_twins(tree: Tree) -> None:
    made = [tree.create_dataset(name, SCHEMA) for name in ("a.x.orders", "a.y.Orders", "b.x.ORDERS")]
    assert {record.slugs[2] for record in made} == {"orders"}


# Looking up -----------------------------------------------------------------------------------------------------------


def test_name_goes_before_slug_level_by_level(any_tree: Tree) -> None:
    by_slug = any_tree.create_dataset("Net Kg.s.d", SCHEMA)
    assert any_tree.dataset("net_kg.s.d").id == by_slug.id, "no catalog has that name, so the slug counts"
    any_tree.create_dataset("net-kg.Data Set.d", SCHEMA)
    assert any_tree.create_dataset("net_kg.other.d", SCHEMA).path.catalog == "Net Kg"
    assert any_tree.find(f"net_kg_{md5('net-kg')}.data_set.D") is None


def test_catalog_that_has_the_name_hides_one_that_has_the_slug(any_database: Database, any_tree: Tree) -> None:
    """Else a dataset of one catalog answers for another's, until that one gets a dataset of the name."""
    any_tree.create_dataset("Net Kg.s.d", SCHEMA)
    client_insert(any_database, "net_kg")
    assert any_tree.find("net_kg.s.d") is None
    made = any_tree.create_dataset("net_kg.s.d", SCHEMA)
    assert made.slugs == (f"net_kg_{md5('net_kg')}", "s", "d")
    assert any_tree.dataset("net_kg.s.d").id == made.id
    assert any_tree.dataset("Net Kg.s.d").id != made.id


def test_unknown_dataset_is_named_with_the_nearest_ones(tree: Tree) -> None:
    tree.create_dataset("main.sales.orders", SCHEMA)
    with pytest.raises(UnknownObject, match=r"main\.sales\.order\n.*did you mean main\.sales\.orders\?"):
        tree.dataset("main.sales.order")
    with pytest.raises(UnknownObject, match="dataset list"):
        tree.dataset("x.y.z")
    with pytest.raises(UnknownObject, match="4711"):
        tree.by_id(4711)
    with pytest.raises(UnknownObject, match="tape"):
        tree.create_dataset("main.sales.x", SCHEMA, arm="tape")


def test_a_name_that_somebody_gives_meanwhile_was_not_renamed(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two make a dataset in passing: the second one's may be there between two looks."""
    former = tree.objects.former

    def made_before(level: str, path: Sequence[str]) -> TreeObject | None:
        tree.create_dataset("main.sales.orders", SCHEMA)
        return former(level, path)

    monkeypatch.setattr(tree.objects, "former", made_before)
    tree.check_unused("main.sales.orders")
    assert tree.find("main.sales.orders") is not None


@pytest.mark.parametrize(("arm", "mode"), [("postgres", "pg"), ("iceberg", "iceberg_native")])
def test_new_dataset_has_its_route_and_a_line_in_the_audit_log(
    database: Database, tree: Tree, arm: str, mode: str
) -> None:
    made = tree.create_dataset("main.sales.orders", SCHEMA, arm=arm, actor="ann")
    assert (made.route.mode, made.route.primary_arm, made.route.mirror_arm, made.route.epoch) == (mode, arm, None, 1)
    assert (made.head_version, made.row_count, made.iceberg_namespace, made.status) == (0, 0, None, "ok")
    assert made.schema == SCHEMA
    assert rows(database, "SELECT actor, action, subject FROM lakeward.audit_log") == [
        ("ann", "catalog.create", "main"),
        ("ann", "schema.create", "main.sales"),
        ("ann", "dataset.create", "main.sales.orders"),
    ]


def test_refused_dataset_leaves_no_catalog_behind(database: Database, tree: Tree) -> None:
    with pytest.raises(InvalidName):
        tree.create_dataset(DatasetName("new", "new", "x" * 256), SCHEMA)
    assert rows(database, "SELECT count(*) FROM lakeward.catalogs") == [(0,)]
    assert rows(database, "SELECT count(*) FROM lakeward.audit_log") == [(0,)]


# At once --------------------------------------------------------------------------------------------------------------


def at_once(calls: list[Callable[[], DatasetRecord]]) -> tuple[list[DatasetRecord], list[LakewardError]]:
    """Run all calls in threads that start together; return what they made and what they raised."""
    start = threading.Barrier(len(calls), timeout=30)
    made: list[DatasetRecord] = []
    raised: list[LakewardError] = []

    def run(call: Callable[[], DatasetRecord]) -> None:
        start.wait()
        try:
            made.append(call())
        except LakewardError as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) + len(raised) == len(calls), "no thread ended in another way"
    return made, raised


def test_ten_threads_make_one_dataset_and_its_parents(tree: Tree) -> None:
    made, raised = at_once([lambda: tree.create_dataset("New.New.Orders", SCHEMA)] * 10)
    assert len(made) == 1
    assert {type(error) for error in raised} == {NameTaken}
    assert [record.slugs for record in tree.datasets()] == [("new", "new", "orders")]


def test_ten_threads_make_ten_datasets_under_one_new_parent(tree: Tree) -> None:
    made, raised = at_once([lambda i=i: tree.create_dataset(f"New.New.d{i}", SCHEMA) for i in range(10)])  # type: ignore[misc]
    assert raised == []
    assert {record.slugs[:2] for record in made} == {("new", "new")}
    assert len(tree.datasets()) == 10


def test_ten_threads_make_names_of_one_slug(tree: Tree) -> None:
    names = [f"emea{separator}north" for separator in "-+/ .,;:!?"]
    made, raised = at_once(
        [lambda name=name: tree.create_dataset(DatasetName("m", "s", name), SCHEMA) for name in names]
    )  # type: ignore[misc]
    assert raised == []
    slugs = {record.slugs[2] for record in made}
    assert len(slugs) == 10
    assert "emea_north" in slugs


def test_ten_threads_make_twins(tree: Tree) -> None:
    names = ["orders", "Orders", "ORDERS", "oRDERS", "orderS"] * 2
    made, raised = at_once([lambda name=name: tree.create_dataset(f"m.s.{name}", SCHEMA) for name in names])  # type: ignore[misc]
    assert len(made) == 1
    assert all(isinstance(error, NameTaken) and made[0].path.dataset in str(error) for error in raised)


def test_six_processes_open_a_new_workspace_and_make_one_dataset(database_url: str) -> None:
    program = """
import sys
from lakeward.control.db import Database
from lakeward.control.schema import migrate
from lakeward.control.tree import Tree
from lakeward.errors import NameTaken
from lakeward.types.schema import Schema
database = Database(sys.argv[1])
migrate(database)
try:
    Tree(database).create_dataset("New.New.Orders", Schema.declare({"id": "long"}))
    print("made")
except NameTaken:
    print("taken")
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", program, database_url], stdout=subprocess.PIPE) for _ in range(6)
    ]
    answers = sorted(process.communicate(timeout=120)[0].decode().strip() for process in processes)
    assert answers == ["made"] + ["taken"] * 5
