"""Small promises that are easily broken from a distance: filters, closing, forks, wide rows, interrupts."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lakeward
from lakeward.errors import UsageError

ARMS = pytest.mark.parametrize("arm", ["postgres", "iceberg"])


@ARMS
@pytest.mark.parametrize("name", ["source", "rows", "t", "unnamed_subquery", "seen"])
def test_a_field_of_a_struct_is_never_taken_for_a_column_of_a_table(
    workspace: lakeward.Workspace, arm: str, name: str
) -> None:
    dataset = workspace.create_dataset("main.sales.d", {"id": "long", name: "struct<id: long>"}, arm=arm)
    dataset.write([{"id": 1, name: {"id": 5}}, {"id": 5, name: {"id": 1}}])
    assert dataset.to_arrow(columns=["id"], where=f"{name}.id = 5").to_pylist() == [{"id": 1}]


def test_a_closed_workspace_says_so(workspace: lakeward.Workspace) -> None:
    dataset = workspace.create_dataset("main.sales.d", {"id": "long"}, arm="iceberg")
    dataset.write([{"id": 1}])
    workspace.close()
    for use in (workspace.datasets, dataset.to_arrow, lambda: dataset.write([{"id": 2}])):
        with pytest.raises(UsageError, match="the workspace is closed"):
            use()


def _in_fork(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> None:
    """Exit with 0 if every use is refused by name, and closing harms nobody."""
    for use in (workspace.datasets, dataset.to_arrow, lambda: dataset.write([{"id": 2}])):
        try:
            use()
        except UsageError as error:
            assert "opened by another process" in error.message
        else:
            os._exit(1)
    workspace.close()
    os._exit(0)


@ARMS
def test_a_fork_is_told_to_open_its_own(workspace: lakeward.Workspace, arm: str) -> None:
    dataset = workspace.create_dataset("main.sales.d", {"id": "long"}, arm=arm)
    dataset.write([{"id": 1}])
    assert dataset.to_arrow(where="id >= 0").num_rows == 1
    child = multiprocessing.get_context("fork").Process(target=_in_fork, args=(workspace, dataset))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert dataset.write([{"id": 2}]).row_count == 2
    assert dataset.to_arrow(where="id >= 0").num_rows == 2


@ARMS
def test_wide_rows_come_in_batches_of_bounded_size(workspace: lakeward.Workspace, arm: str) -> None:
    dataset = workspace.create_dataset("main.sales.d", {"id": "long", "text": "string"}, arm=arm)
    text = "x" * 100_000
    dataset.write({"id": number, "text": text} for number in range(3_000))
    sizes = [batch.nbytes for batch in dataset.read(where="id >= 0")]
    assert sum(sizes) >= 3_000 * 100_000
    assert max(sizes) < 256 << 20
    assert dataset.digest().count == 3_000


def test_rows_of_any_shape_are_gathered_in_order(workspace: lakeward.Workspace) -> None:
    dataset = workspace.create_dataset("main.sales.d", {"id": "long"}, arm="iceberg")
    dataset.write({"id": number} for number in range(150_000))
    rows = dataset.to_arrow(identity=True)
    assert rows.num_rows == 150_000
    assert rows["id"].combine_chunks() == pa.array(rows["__row_index"].combine_chunks())


def test_ctrl_c_ends_a_query_without_end(short_tmp: Path, database_url: str) -> None:
    project = short_tmp / "project"
    (project / "pipelines").mkdir(parents=True)
    (project / "lakeward.toml").write_text("[project]\nname = 'endless'\n")
    (project / "pipelines" / "endless.sql").write_text(
        "-- pipeline: endless\n-- sources: {d: main.sales.d}\n-- output: main.sales.e\n-- strategy: replace\n"
        "with recursive t(i) as (select 1 union all select i + 1 from t) select max(t.i + d.id) as m from t, d\n"
    )
    script = textwrap.dedent(
        """
        import sys, lakeward
        with lakeward.open(sys.argv[1], database_url=sys.argv[2]) as ws:
            ws.create_dataset("main.sales.d", {"id": "long"}).write([{"id": 1}])
            ws.apply(sys.argv[3])
            print("building", flush=True)
            try:
                ws.build("endless")
            except KeyboardInterrupt:
                print([t.status for t in ws.transactions()], flush=True)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(short_tmp / "home"), database_url, str(project)],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "building\n"
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    try:
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert out == "['aborted', 'committed']\n"
