"""`lakeward catalog`, `schema` and `dataset`: what their commands about names print, ask for, and leave alone."""

from __future__ import annotations

import lakeward
from support.commands import Run


def test_made_listed_and_made_once(run: Run) -> None:
    assert "make catalog Sales EU\n" in run("catalog", "create", "Sales EU", "--dry-run").out
    assert run("schema", "create", "Sales EU.raw").out.startswith("schema Sales EU.raw: created; its slug is raw\n")
    again = run("catalog", "create", "Sales EU", "--output", "json").document
    assert (again["created"], again["slug"], again["next_steps"]) == (False, "sales_eu", [])
    assert run("catalog", "create", "sales eu").code == 2
    listed = run("catalog", "list", "--output", "json").document["catalogs"]
    assert [(each["name"], each["slug"], each["schemas"], each["datasets"]) for each in listed] == [
        ("Sales EU", "sales_eu", 1, 0)
    ]
    assert run("schema", "create", "raw").code == 2


def test_renamed_dropped_and_back(run: Run, opened: lakeward.Workspace) -> None:
    opened.create_dataset("a.b.orders", {"id": "long"}).write([{"id": 1}])
    dry = run("dataset", "rename", "a.b.orders", "Orders 2024", "--dry-run")
    assert "call dataset a.b.orders a.b.Orders 2024" in dry.out and opened.dataset("a.b.orders").version == 1
    assert run("dataset", "rename", "a.b.orders", "x.y.z").code == 2
    assert run("dataset", "rename", "a.b.orders", "Orders 2024").out == "dataset a.b.orders is a.b.Orders 2024 now\n"
    assert run("dataset", "rename", "a.b.Orders 2024", "Orders 2024").out.endswith("nothing to do\n")
    unnamed = run("dataset", "drop", "a.b.Orders 2024")
    assert unnamed.code == 2 and "--yes" in unnamed.err and "wait for writers" in unnamed.out
    full = run("catalog", "drop", "a", "--yes")
    assert full.code == 2 and "schema a.b" in full.err and "--cascade" in full.err
    dropped = run("catalog", "drop", "a", "--yes", "--cascade", "--output", "json").document
    assert dropped["dropped"] and dropped["next_steps"] == ["lakeward catalog undrop a"]
    twice = run("catalog", "drop", "a", "--yes")
    assert twice.code == 0 and twice.out.startswith("nothing to do: unknown catalog a: it was dropped at ")
    preview = run("dataset", "preview", "a.b.Orders 2024")
    assert preview.code == 2 and "Next: `lakeward dataset undrop 'a.b.Orders 2024'`" in preview.err
    [listed] = run("dataset", "list", "--dropped", "--output", "json").document["dropped"]
    assert (listed["name"], listed["rows"]) == ("a.b.Orders 2024", 1) and listed["undo_until"] > listed["dropped_at"]
    back = run("dataset", "undrop", "a.b.Orders 2024", "--as", "orders")
    assert back.out.splitlines()[:3] == ["catalog a is back", "schema a.b is back", "dataset a.b.orders is back"]
    assert run("dataset", "undrop", "a.b.orders").out.startswith("nothing to do")
    assert opened.dataset("a.b.orders").to_arrow()["id"].to_pylist() == [1]


def test_all_that_comes_back_is_named(run: Run, opened: lakeward.Workspace) -> None:
    opened.create_dataset("a.b.orders", {"id": "long"})
    opened.create_schema("a.empty")
    run("catalog", "drop", "a", "--yes", "--cascade")
    document = run("catalog", "undrop", "a", "--as", "A 2", "--output", "json").document
    assert (document["catalogs"], document["schemas"]) == (["A 2"], ["A 2.b", "A 2.empty"])
    assert (document["datasets"], document["back"]) == (["A 2.b.orders"], True)
    run("schema", "drop", "A 2.empty", "--yes")
    assert run("schema", "undrop", "A 2.empty").out.splitlines()[0] == "schema A 2.empty is back"


def test_a_dry_run_says_that_a_flip_is_in_the_way(run: Run, opened: lakeward.Workspace) -> None:
    opened.create_dataset("a.b.orders", {"id": "long"}).write([{"id": 1}])
    opened.flip("a.b.orders").run(to="iceberg", until="mirror")
    for command in (("dataset", "drop", "a.b.orders"), ("catalog", "drop", "a", "--cascade")):
        for how in ("--dry-run", "--yes"):
            refused = run(*command, how)
            assert refused.code == 6 and "a flip is under way of a.b.orders" in refused.err, how
            assert "Next: end it first: `lakeward flip complete a.b.orders`" in refused.err
    assert opened.dataset("a.b.orders").version == 1
