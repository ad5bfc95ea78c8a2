"""`lakeward flip start` of many datasets, `flip status` of all, and the canary, as commands."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeward
from lakeward.control.routes import ARM_MODES
from support.commands import Run

PIPELINE = """
pipeline: made
nodes:
  raw: {source: main.sales.orders}
  kept: {transform: "select * from raw"}
outputs:
  - {dataset: main.sales.a_report, from: kept, strategy: replace, arm: postgres}
"""


@pytest.fixture
def sales(run: Run, place: Path, opened: lakeward.Workspace) -> lakeward.Workspace:
    """A producer, the consumer that a pipeline makes of it, a dataset that can't be flipped now, and one elsewhere."""
    for name in ("main.sales.orders", "main.sales.broken", "main.other.thing"):
        opened.create_dataset(name, {"id": "long"}, ["id"]).write([{"id": 1}, {"id": 2}])
    (place / "pipelines").mkdir()
    (place / "lakeward.toml").write_text("", encoding="utf-8")
    (place / "pipelines" / "made.yml").write_text(PIPELINE, encoding="utf-8")
    assert run("apply").code == 0
    assert run("build").code == 0
    opened.flip("main.sales.broken").run("iceberg", until="backfill")
    flip = opened.flip("main.sales.broken")
    flip._rooms.parity.record(opened.dataset("main.sales.broken").record.id, 1, "full", equal=False, rows=2, details={})
    with opened.database.transaction() as connection:
        connection.exec_driver_sql(
            "UPDATE lakeward.dataset_rows SET data = '{\"id\": 7}' WHERE data->>'id' = '1' "
            "AND dataset_id = (SELECT id FROM lakeward.datasets WHERE slug = 'broken')"
        )
    return opened


def test_many_are_flipped_consumers_first_and_the_rest_later(run: Run, sales: lakeward.Workspace) -> None:
    plan = run("flip", "start", "--select", "sales.*", "--limit", "2", "--dry-run")
    assert [line.split()[1] for line in plan.out.splitlines() if "backfill: read" in line] == ["main.sales.a_report:"]
    first = run("flip", "start", "--select", "sales.*", "--limit", "2", "--output", "json")
    told = {each["dataset"]: each["outcome"] for each in first.document["datasets"]}
    assert told == {"main.sales.a_report": "flipped", "main.sales.broken": "failed", "main.sales.orders": "left"}
    assert list(told) == ["main.sales.a_report", "main.sales.broken", "main.sales.orders"]
    assert first.code == 4
    assert "lakeward flip start --select 'sales.*' --to iceberg --limit 2" in first.document["next_steps"]
    again = run("flip", "start", "main.sales.orders", "main.sales.a_report", "--order", "name")
    assert again.code == 0
    assert "1 of 2: main.sales.a_report: was done before" in again.out
    assert "2 of 2: main.sales.orders: flipped in" in again.out
    assert again.out.splitlines()[2] == "1 dataset flipped, 1 dataset done"
    assert sales.dataset("main.other.thing").record.route.mode == "pg"

    every = run("flip", "status")
    rows = {line.split()[0]: line.split()[1:] for line in every.out.splitlines() if line.startswith("main.")}
    assert rows["main.sales.orders"][:5] == ["iceberg_dual", "iceberg", "0", "iceberg", "complete"]
    assert "DIFFERENT" in rows["main.sales.broken"]
    assert rows["main.other.thing"] == ["pg", "postgres"]
    document = run("flip", "status", "--output", "json").document
    assert {each["dataset"]: each["mode"] for each in document["datasets"]}["main.sales.orders"] == "iceberg_dual"


def test_what_is_asked_for_wrongly_is_refused_by_name(run: Run, opened: lakeward.Workspace) -> None:
    opened.create_dataset("main.sales.orders", {"id": "long"})
    assert "no dataset is named" in run("flip", "start").err
    assert "no dataset's name is like slaes.*" in run("flip", "start", "--select", "slaes.*").err
    assert "--until is for one dataset" in run("flip", "start", "--select", "*", "--until", "mirror").err
    assert "either --for 30m or --smoke" in run("flip", "canary", "main.sales.orders").err
    assert run("flip", "canary", "main.sales.orders", "--for", "soon").code == 2


def test_a_canary_by_command(run: Run, opened: lakeward.Workspace) -> None:
    opened.create_dataset("main.sales.orders", {"id": "long"}, ["id"]).write([{"id": 1}, {"id": 2}])
    run("flip", "start", "main.sales.orders", "--until", "mirror")
    smoke = run("flip", "canary", "main.sales.orders", "--smoke")
    assert smoke.code == 0 and "canary: 4 reads compared" in smoke.out
    watched = run("flip", "canary", "main.sales.orders", "--for", "0.5s", "--then", "nothing", "--output", "json")
    assert watched.document["steps"][0]["mismatches"] == 0
    assert (watched.document["mode"], watched.document["next_stage"]) == ("dual", "switch")
    stopped = run("flip", "canary", "main.sales.orders", "--for", "0.5s", "--min-reads", "500")
    assert stopped.code == 6 and "500 are needed" in stopped.err
    assert run("flip", "canary", "main.sales.orders", "--for", "0.5s").code == 0
    assert opened.dataset("main.sales.orders").record.route.mode == "iceberg_dual"


def test_what_gains_from_a_flip_is_told_with_its_facts(run: Run, opened: lakeward.Workspace) -> None:
    """Small writes to Iceberg, again and again; and on Postgres nothing that would speak for a flip."""
    datasets = [opened.create_dataset(f"main.s.on_{arm}", {"id": "long"}, ["id"], arm=arm) for arm in ARM_MODES]
    for dataset in datasets:
        dataset.write([{"id": 0}])
    assert run("status", "--advise").out == "nothing speaks for a flip\n"
    for number in range(1, 24):
        datasets[1].write([{"id": number}])
        datasets[0].to_arrow(where=f"id = {number}", arm="postgres")
    opened.flags.set(reader="api.read", prefer="iceberg")
    assert datasets[0].to_arrow().num_rows == 1
    opened.metrics(days=1)
    assert "in the last 7 days: fallback reads 1\n" in run("status").out
    counted = run("status", "--output", "json").document["counters"]
    assert counted["days"] == 7
    assert counted["values"]['lakeward_reads_total{arm="postgres",kind="point",reader="api.read"}'] == 23
    told = run("status", "--advise", "--output", "json").document
    [advice] = told["advice"]
    assert (advice["dataset"], advice["to"]) == ("main.s.on_iceberg", "postgres")
    assert advice["reason"].startswith("24 rows, written 24 times a day with 1 rows each: every write makes a snapshot")
    facts = advice["facts"]
    assert (facts["rows"], facts["writes"], facts["rows_written"], facts["delete_files"]) == (24, 24, 24, 0)
    assert facts["data_files"] > 1 and facts["bytes"] > 0 and "replaced_rows" not in facts
    assert told["next_steps"] == ["lakeward flip start main.s.on_iceberg --to postgres --dry-run"]
    assert "looked at: rows 24, days 0.0, writes 24" in run("status", "--advise").out
