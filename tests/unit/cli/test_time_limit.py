"""`compute.time_limit_seconds` ends user SQL wherever it runs: outputs, what is expected of them, runs and filters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from support.commands import Ran, Run

FILE = """\
-- pipeline: one
-- sources: {s: a.b.c}
-- output: a.b.d
-- strategy: replace
"""
ENDLESS = "with recursive t(n) as (select 1::bigint union all select n + 1 from t) select max(n) as id from t"
HEAVY = "list_sum(list_transform(range(20000), lambda x: (x * id) % 7)) >= 0"
SLOW = """\
import time

def f(batch):
    end = time.monotonic() + 0.15
    while time.monotonic() < end:
        pass
    return [0.0] * batch.num_rows
"""


@pytest.fixture
def build(run: Run, place: Path, opened: lakeward.Workspace) -> Callable[[str], Ran]:
    """Applies one pipeline file and builds it, within half a second of compute; there is a source of 20,000 rows."""
    opened.create_dataset("a.b.c", {"id": "long"}).write([{"id": number} for number in range(20_000)])
    (place / "lakeward.toml").write_text("[compute]\ntime_limit_seconds = 0.5\ntemp_limit = '1GB'\n")
    (place / "pipelines").mkdir()

    def apply_and_build(text: str) -> Ran:
        (place / "pipelines" / "one.sql").write_text(text)
        assert run("apply").code == 0
        return run("build", "--output", "json")

    return apply_and_build


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"{FILE}{ENDLESS}", "pipeline 'one', output a.b.d: the query computed for longer than 0.5 s"),
        (f"{FILE}-- expectations: [{{row: {{check: '{HEAVY}'}}}}]\nselect * from s", "what is expected of a.b.d can't"),
        (
            f"{FILE}-- expectations: [{{row: {{check: '{HEAVY}', on_fail: quarantine}}}}]\nselect * from s",
            "pipeline 'one', output a.b.d: the query computed for longer than 0.5 s",
        ),
    ],
    ids=["output", "expectation", "quarantine"],
)
def test_a_build_is_ended_and_leaves_its_dataset_as_it_was(
    build: Callable[[str], Ran], opened: lakeward.Workspace, text: str, what: str
) -> None:
    assert build(f"{FILE}select 7::bigint as id").code == 0
    failed = build(text)
    assert (failed.code, failed.document["error"]) == (1, "TimeLimitExceeded"), failed.err
    assert what in failed.document["message"]
    assert failed.document["fields"]["pipeline"] == "one" and failed.document["fields"]["dataset"] == "a.b.d"
    assert "unchanged" in failed.document["safe"]
    assert opened.dataset("a.b.d").preview().to_pylist() == [{"id": 7}]


def test_a_run_and_a_filter_are_ended(build: Callable[[str], Ran], run: Run, opened: lakeward.Workspace) -> None:
    ran = run("run", ENDLESS, "--into", "a.b.e")
    assert ran.code == 1 and "compute.time_limit_seconds" in ran.err
    for arm in ("postgres", "iceberg"):
        name = f"a.b.{arm}"
        opened.create_dataset(name, {"id": "long"}, arm=arm).write([{"id": number} for number in range(20_000)])
        read = run("dataset", "export", name, f"{arm}.csv", "--where", HEAVY)
        assert read.code == 1 and "filter 'LIST_SUM(" in read.err, read.err
        assert "longer than 0.5 s, its limit by compute.time_limit_seconds" in read.err


def test_a_model_is_limited_by_a_setting_of_its_own(run: Run, place: Path, opened: lakeward.Workspace) -> None:
    opened.create_dataset("a.b.c", {"id": "long"}).write([{"id": number} for number in range(4)])
    (place / "lakeward.toml").write_text("[models]\ntime_limit_seconds = 0.2\n")
    for folder in ("models", "pipelines"):
        (place / folder).mkdir()
    (place / "models" / "m.py").write_text(SLOW)
    (place / "pipelines" / "one.yml").write_text(
        "pipeline: one\nnodes:\n  s: {source: a.b.c}\n"
        "  scored: {model: {input: s, model: m@1, features: [id], outputs: {y: double}, batch_rows: 1}}\n"
        "outputs:\n  - {dataset: a.b.d, from: scored, strategy: replace}\n"
    )
    assert run("model", "add", "m:f", "--name", "m", "--features", "id:long", "--outputs", "y:double").code == 0
    assert run("apply").code == 0
    failed = run("build")
    assert failed.code == 1, failed.err
    assert "pipeline 'one', output a.b.d: node scored, model m@1, batch 2" in failed.err
    assert opened.dataset("a.b.d").version == 0
