"""A workspace with two pipelines, and one more kind of job, found beside those of the product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.jobs import kinds
from lakeward.jobs.job import Job
from lakeward.jobs.queue import Jobs
from support.databases import WORKSPACE, drop_database, made_database
from support.waiting import until
from support.workers import KINDS, find_kinds

PIPELINES = {
    "doubled": ("main.made.doubled", "select id, 2 * id as twice from numbers", "main.raw.numbers", "replace"),
    "summed": (
        "main.made.summed",
        "select count(*) as rows, sum(twice) as total from numbers",
        "main.made.doubled",
        "replace",
    ),
    "gathered": ("main.made.gathered", "select id from numbers", "main.raw.numbers", "append_always"),
}


@pytest.fixture(scope="module", autouse=True)
def kind_of_tests() -> Iterator[None]:
    """Let discovery find the kinds of tests: adding a kind is adding a file."""
    find_kinds()
    yield
    kinds.__path__.remove(KINDS)


@pytest.fixture(scope="module")
def database_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database with the tables of a workspace, for all tests of a file."""
    url = made_database(postgres, WORKSPACE)
    yield url
    drop_database(postgres.url, url)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where its Iceberg tables are."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="module")
def workspace(database_url: str, warehouse: Path) -> Iterator[lakeward.Workspace]:
    """A workspace, for all tests of a file."""
    with lakeward.open(database_url=database_url, warehouse=warehouse) as opened:
        yield opened


@pytest.fixture(scope="module")
def applied(workspace: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> lakeward.Workspace:
    """The workspace with pipelines and rows for them."""
    project = tmp_path_factory.mktemp("project")
    (project / "pipelines").mkdir()
    (project / "lakeward.toml").write_text("[project]\nname = 'jobs'\n", encoding="utf-8")
    for name, (output, sql, source, strategy) in PIPELINES.items():
        header = (
            f"-- pipeline: {name}\n-- sources: {{numbers: {source}}}\n-- output: {output}\n-- strategy: {strategy}\n"
        )
        (project / "pipelines" / f"{name}.sql").write_text(header + sql, encoding="utf-8")
    workspace.create_dataset("main.raw.numbers", {"id": "long"}).write([{"id": number} for number in range(5)])
    workspace.apply(project)
    return workspace


@pytest.fixture(scope="module")
def queue(workspace: lakeward.Workspace) -> Jobs:
    """Its queue."""
    return Jobs(workspace)


@pytest.fixture
def ended(queue: Jobs) -> Callable[[int], Job]:
    """Waits until a job has ended."""

    def wait(job_id: int) -> Job:
        until(lambda: queue.get(job_id).ended)
        return queue.get(job_id)

    return wait
