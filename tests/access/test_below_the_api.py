"""What somebody may not see or do is unknown or refused below every way in: in the tree, the facade and the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lakeward
from lakeward.access.guard import acting, closed
from lakeward.access.principal import NOBODY, OWNER, Grant, Place, Principal
from lakeward.access.roles import Role
from lakeward.control.records import Intent
from lakeward.errors import Forbidden, UnknownObject
from lakeward.pipelines.lineage import UNSEEN
from lakeward.storage.requests import ReadRequest
from support.databases import rows_of

PROJECT = """
pipeline: {name}
nodes:
  orders: {{source: {catalog}.sales.orders}}
  again: {{source: {catalog}.sales.orders}}
  pair: {{join: {{left: orders, right: again, on: [id], suffixes: ["", "_again"]}}}}
  picked: {{transform: "select id, amount from pair"}}
outputs:
  - dataset: {catalog}.out.{name}
    from: picked
    strategy: snapshot_replace
    primary_key: [id]
    expectations:
      - row: {{check: "amount < 20", on_fail: quarantine}}
"""


def ann(role: Role, *place: str) -> Principal:
    """Somebody with one role."""
    return Principal("ann", (Grant(role, place),))


@contextmanager
def only(who: Principal) -> Iterator[None]:
    """Let nobody else act, in any thread."""
    with closed(), acting(who):
        yield


def test_what_is_not_seen_is_not_there(ws: lakeward.Workspace, catalog: str) -> None:
    """In no list, by no name, as no hint, and in no count."""
    with only(ann(Role.BUILDER, catalog, "sales")):
        assert [each.name for each in ws.datasets()] == [f"{catalog}.sales.orders"]
        assert [each.what.name for each in ws.schemas()] == [f"{catalog}.sales"]
        (seen,) = ws.catalogs()
        assert (seen.schemas, seen.datasets, seen.rows) == (1, 1, 2)
        for name in (f"{catalog}.hr.salaries", f"{catalog}.hr.salarie"):
            with pytest.raises(UnknownObject) as told:
                ws.dataset(name)
            assert told.value.next_step == "`lakeward dataset list` shows what there is" or "hr" not in str(
                told.value.next_step
            )
        assert ws.names("schema").find(f"{catalog}.hr") is None
        assert {each.dataset for each in ws.transactions()} == {f"{catalog}.sales.orders"}
    assert len(ws.names("schema").list()) >= 2


def test_what_is_dropped_or_renamed_unseen_leaves_no_trace(ws: lakeward.Workspace, catalog: str) -> None:
    """Its old name tells nothing either."""
    ws.names("dataset").rename(f"{catalog}.hr.salaries", "pay")
    with only(ann(Role.VIEWER, catalog, "sales")), pytest.raises(UnknownObject) as told:
        ws.dataset(f"{catalog}.hr.salaries")
    assert "pay" not in str(told.value)
    ws.names("dataset").drop(f"{catalog}.hr.pay")
    with only(ann(Role.VIEWER, catalog, "sales")):
        assert ws.dropped_datasets() == []
        with pytest.raises(UnknownObject) as told:
            ws.names("dataset").undrop(f"{catalog}.hr.pay")
    assert "dropped" not in str(told.value)


@pytest.mark.parametrize("read", ["read", "to_arrow", "changes", "preview", "digest", "verify", "locate"])
def test_a_handle_opens_nothing(ws: lakeward.Workspace, catalog: str, read: str) -> None:
    """Rows are read by whoever may at that moment."""
    held = ws.dataset(f"{catalog}.hr.salaries")
    call: Callable[[], object] = (lambda: held.changes(0)) if read == "changes" else getattr(held, read)
    with only(ann(Role.ADMIN, catalog, "sales")), pytest.raises(Forbidden, match=r"dataset\.read in .*hr.salaries"):
        call()
    with only(NOBODY), pytest.raises(Forbidden):
        call()
    with only(NOBODY), pytest.raises(Forbidden):
        ws.storage.in_place([(held.record, ReadRequest())])


def test_who_reads_may_not_write(ws: lakeward.Workspace, catalog: str) -> None:
    """Each step upwards takes its role, and is told."""
    name = f"{catalog}.sales.orders"
    with only(ann(Role.VIEWER, catalog)):
        orders = ws.dataset(name)
        assert orders.to_arrow().num_rows == 2
        for change in (
            lambda: orders.write([{"id": 3, "amount": 1}]),
            lambda: orders.keep(),
            lambda: ws.create_dataset(f"{catalog}.sales.new", {"id": "long"}),
            lambda: ws.names("dataset").rename(name, "other"),
            lambda: ws.names("dataset").drop(name),
            lambda: ws.flip(name).run("iceberg"),
            lambda: ws.flags.set(reader="api.read", prefer="shadow", dataset=name),
            lambda: ws.maintain(name),
            lambda: ws.recover(),
            lambda: ws.build(),
        ):
            with pytest.raises(Forbidden, match="lakeward grant set ann"):
                change()
    assert ws.dataset(name).version == 1
    assert ws.dataset(name).arm == "postgres"


def test_a_name_that_is_there_unseen_is_refused_like_one_that_is_not(ws: lakeward.Workspace, catalog: str) -> None:
    """So that nobody finds names by making them."""
    said = []
    with only(ann(Role.BUILDER, catalog, "sales")):
        for schema in ("hr", "hq"):
            with pytest.raises(Forbidden) as told:
                ws.create_dataset(f"{catalog}.{schema}.salaries", {"id": "long"})
            said.append(str(told.value).replace(schema, "*"))
        made = ws.create_dataset(f"{catalog}.sales.returns", {"id": "long"})
    assert said[0] == said[1]
    assert made.name == f"{catalog}.sales.returns"
    (actor,) = rows_of(ws, "SELECT actor FROM lakeward.audit_log WHERE subject = %s", made.name)
    assert actor == ("ann",)


def test_a_build_in_threads_is_its_builders(ws: lakeward.Workspace, catalog: str, tmp_path: Path) -> None:
    """Joins, bad rows put aside, two at a time, and readers that compare both arms."""
    (tmp_path / "lakeward.toml").touch()
    (tmp_path / "pipelines").mkdir()
    for name in ("one", "two"):
        file = tmp_path / "pipelines" / f"{name}.yml"
        file.write_text(PROJECT.format(name=f"{name}_{catalog}", catalog=catalog))
    orders = f"{catalog}.sales.orders"
    ws.flip(orders).run("iceberg", until="mirror")
    ws.flags.set(reader="pipelines.source", prefer="shadow")
    ws.flags.set(reader="api.read", prefer="shadow")
    try:
        with only(ann(Role.BUILDER)):
            ws.apply(tmp_path)
            results = ws.build(f"one_{catalog}", f"two_{catalog}", jobs=2)
            assert ws.dataset(orders).to_arrow().num_rows == 2
    finally:
        ws.flags.clear(reader="pipelines.source")
        ws.flags.clear(reader="api.read")
    assert [each.transactions[0].rows_added for each in results] == [1, 1]
    assert ws.dataset(f"{catalog}.out.one_{catalog}__quarantine").row_count == 1
    made = rows_of(ws, "SELECT DISTINCT actor FROM lakeward.audit_log WHERE subject LIKE %s", f"{catalog}.out%")
    assert made == [("ann",)]


def test_lineage_tells_of_what_one_may_see(ws: lakeward.Workspace, catalog: str, tmp_path: Path) -> None:
    """What is hidden in between is one step, without a name; and no pipeline's, nor in what can't be told."""
    (tmp_path / "lakeward.toml").touch()
    (tmp_path / "pipelines").mkdir()
    for name, source, output, sql in (
        ("first", "sales.orders", "hr.first", "select id, amount + 1 as more, amount as same from o"),
        ("second", "hr.first", "hr.second", "select id, more + same as more from o"),
        ("third", "hr.second", "sales.third", "select id, more from o"),
        ("untold", "hr.salaries", "hr.untold", "select columns('am.*') from o"),
    ):
        header = (
            f"-- pipeline: {name}_{catalog}\n-- sources: {{o: {catalog}.{source}}}\n-- output: {catalog}.{output}\n"
        )
        (tmp_path / "pipelines" / f"{name}.sql").write_text(f"{header}-- strategy: replace\n{sql}")
    ws.apply(tmp_path)
    ws.build(*(f"{name}_{catalog}" for name in ("first", "second", "third", "untold")))
    orders, third = f"{catalog}.sales.orders", f"{catalog}.sales.third"
    with only(ann(Role.VIEWER, catalog, "sales")):
        lineage = ws.pipelines.lineage()
        up, down = lineage.up(third, "more"), lineage.down(orders, "amount")
    (hidden,) = up.links
    assert (up.pipeline, str(hidden), [str(each) for each in hidden.links]) == (
        f"third_{catalog}",
        UNSEEN,
        [f"{orders}.amount"],
    )
    assert hidden.to_json()["dataset"] is None
    assert [[str(each) for each in link.links] for link in down.links] == [[f"{third}.more"]]
    assert "hr." not in repr((up, down)) and "first" not in repr(down)
    with only(ann(Role.VIEWER, catalog, "hr")):
        lineage = ws.pipelines.lineage()
        assert lineage.down(f"{catalog}.hr.salaries", "amount").note is not None
        assert [str(each) for each in lineage.up(f"{catalog}.hr.first", "same").links] == [UNSEEN]
    with only(ann(Role.VIEWER)):
        assert str(ws.pipelines.lineage().up(third, "more").links[0]) == f"{catalog}.hr.second.more"


def test_code_of_a_project_takes_an_admin(ws: lakeward.Workspace, catalog: str, tmp_path: Path) -> None:
    """It runs as the server, and could do all that this may."""
    (tmp_path / "lakeward.toml").touch()
    for folder in ("pipelines", "models", "python"):
        (tmp_path / folder).mkdir()
    (tmp_path / "models" / "score.py").write_text("def predict(batch):\n    return {'risk': [0.0] * batch.num_rows}\n")
    with only(ann(Role.BUILDER)), pytest.raises(Forbidden, match=r"code\.run"):
        ws.add_model("score:predict", f"m_{catalog}", {"amount": "long"}, ["risk:double"], tmp_path)
    with only(ann(Role.ADMIN)):
        ws.add_model("score:predict", f"m_{catalog}", {"amount": "long"}, ["risk:double"], tmp_path)


def test_a_builder_tidies_up_what_others_left(ws: lakeward.Workspace, catalog: str) -> None:
    """Recovery before a write is the workspace's own affair."""
    orders = ws.dataset(f"{catalog}.sales.orders")
    intent = Intent(
        dataset_id=orders.record.id,
        dataset=orders.name,
        kind="write",
        verb="append",
        build_id=ws.moving._ids.new(),
        writer="ingest.api",
    )
    left = ws.ledger.try_open(intent)
    assert left is not None
    rows_of(ws, "UPDATE lakeward.leases SET lease_until = now() - interval '1 hour' WHERE transaction_id = %s", left.id)
    with only(ann(Role.BUILDER, catalog, "sales")):
        assert ws.dataset(orders.name).write([{"id": 3, "amount": 1}]).rows_added == 1


@pytest.mark.parametrize("place", [(), ("elsewhere",)])
def test_only_the_whole_workspace_gives_what_has_no_place(ws: lakeward.Workspace, place: Place) -> None:
    """A builder of one catalog does not see all pipelines, which tell of every dataset."""
    with only(ann(Role.BUILDER, *place)):
        if place:
            with pytest.raises(Forbidden, match="whole workspace"):
                ws.pipelines.applied()
        else:
            ws.pipelines.applied()
    with acting(OWNER):
        ws.pipelines.applied()
