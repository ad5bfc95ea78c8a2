"""Pages where work is asked for and watched: flips, pipelines, jobs, the ledger. A worker beside them does it."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import lakeward
from lakeward.jobs.queue import Jobs
from lakeward.jobs.worker import InProcessWorker
from lakeward.server.app import create_app

HTML = {"Accept": "text/html"}
DAILY = """
pipeline: {name}
nodes:
  orders: {{source: main.pages.orders}}
  kept:
    transform: |
      select id, amount
      from orders
      where amount > {least}
outputs:
  - {{dataset: 'main.pages."kept of/{name}"', from: kept, strategy: snapshot_replace, primary_key: [id]}}
"""


@pytest.fixture(scope="module")
def site(workspace: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A browser without a screen."""
    app = create_app(workspace, tmp_path_factory.mktemp("bodies"), page_rows=50, body_limit=1 << 20)
    with TestClient(app, base_url="http://127.0.0.1", headers=HTML) as client:
        yield client


@pytest.fixture(scope="module")
def worker(workspace: lakeward.Workspace) -> Iterator[InProcessWorker]:
    """Does what is asked for."""
    with InProcessWorker(workspace) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def orders(workspace: lakeward.Workspace) -> lakeward.Dataset:
    """What pipelines read."""
    made = workspace.create_dataset("main.pages.orders", {"id": "long", "amount": "long"}, ["id"])
    made.write([{"id": each, "amount": each} for each in range(100)])
    return made


def _text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def _until(look: Callable[[], str], wanted: str) -> str:
    """Look at a page again and again until something stands there, as a browser does."""
    until = time.monotonic() + 60
    while wanted not in (page := look()):
        assert time.monotonic() < until, f"{wanted!r} never came: {_text(page)}"
        time.sleep(0.05)
    return page


@pytest.mark.usefixtures("worker")
def test_a_flip_by_its_buttons(site: TestClient, workspace: lakeward.Workspace) -> None:
    """Started, switched, reverted, switched again and completed, each after its dry run; the history tells of it."""
    name = 'main.pages."a/b.c"'
    dataset = workspace.create_dataset(name, {"id": "long"}, ["id"])
    dataset.write([{"id": each} for each in range(10)])
    here = "/flips/main.pages.%22a%2Fb.c%22"

    assert "never flipped" in site.get(here).text
    assert "read all 10 rows of version 1 from the postgres arm" in _text(site.get(here, params={"ask": "start"}).text)
    site.post(here, data={"do": "start"})
    page = _until(lambda: site.get(here).text, ">Switch</a>")
    assert [each.split('"')[0] for each in page.split('<li class="')[1:5]] == ["done"] * 4
    assert workspace.dataset(name).arm == "postgres"
    site.post(here, data={"do": "switch"})
    _until(lambda: site.get(here).text, ">Revert</a>")
    assert workspace.dataset(name).arm == "iceberg"
    assert "Iceberg , mirrored to Postgres" in _text(site.get(f"/datasets/{name}").text)
    asked = _text(site.get(here, params={"ask": "revert"}).text)
    assert "Revert: what it does, literally" in asked and "set mode dual" in asked
    site.post(here, data={"do": "revert"})
    _until(lambda: site.get(here).text, ">Switch</a>")
    assert workspace.dataset(name).arm == "postgres"
    site.post(here, data={"do": "switch"})
    _until(lambda: site.get(here).text, ">Complete</a>")
    refused = site.post(here, data={"do": "complete", "confirm": "main.pages.other"})
    assert refused.status_code == 400 and "the name that was typed is not" in _text(refused.text)
    site.post(here, data={"do": "complete", "confirm": name})
    _until(lambda: site.get(here).text, "was completed")
    assert workspace.dataset(name).arm == "iceberg"
    assert workspace.flip(name).status().outcome == "completed"
    assert "completed" in _text(site.get("/flips").text)
    writers = [each.writer for each in dataset.history(idle=True)]
    assert writers[:4] == ["flip.complete", "flip.switch", "flip.revert", "flip.switch"]


def test_what_can_not_be_done_now_is_refused(site: TestClient, workspace: lakeward.Workspace) -> None:
    """By name, with nothing changed; so is what is no dataset, and a word that there is not."""
    workspace.create_dataset("main.pages.alone", {"id": "long"})
    for word in ("switch", "complete", "nonsense"):
        answer = site.post("/flips/main.pages.alone", data={"do": word})
        assert answer.status_code == 400 and "can't be done" in _text(answer.text)
    assert site.get("/flips/main.pages.nothing").status_code == 404
    assert site.get("/flips/find", params={"dataset": "main.pages.alone"}).url.path == "/flips/main.pages.alone"
    assert workspace.flip("main.pages.alone").status().to is None


def test_one_job_at_a_time_works_on_a_flip(site: TestClient, workspace: lakeward.Workspace) -> None:
    """While it waits or runs nothing else can be asked for but to stop it. No worker is needed to see that."""
    workspace.create_dataset("main.pages.waits", {"id": "long"}).write([{"id": 1}])
    queue = Jobs(workspace)
    waiting = queue.add("flip", {"dataset": "main.pages.waits", "do": "run"}, run_at=_in_an_hour())
    page = _text(site.get("/flips/main.pages.waits").text)
    assert "waits for a worker" in page and "Stop" in page
    assert site.post("/flips/main.pages.waits", data={"do": "start"}).status_code == 409
    site.post("/flips/main.pages.waits", data={"do": "stop"})
    assert queue.get(waiting.id).status == "cancelled"
    shown = _text(site.get(f"/jobs/{waiting.id}").text)
    assert "cancelled" in shown and "main.pages.waits" in shown


@pytest.mark.usefixtures("worker")
def test_a_pipeline_is_seen_built_and_changed(site: TestClient, workspace: lakeward.Workspace, tmp_path: Path) -> None:
    """Its graph and queries; a build by its button; another text of it planned first, and then applied."""
    _apply(workspace, tmp_path, "by hand")
    here = "/pipelines/by%20hand"
    assert "to be built" in _text(site.get("/pipelines").text)
    page = site.get(here).text
    assert "where amount &gt; 50" in page
    site.post(here, data={"do": "build"})
    _until(lambda: site.get(here).text, ">Build</button>")
    dataset = workspace.dataset('main.pages."kept of/by hand"')
    assert dataset.row_count == 49
    assert "up to date" in _text(site.get("/pipelines").text)
    text = _area(site.get(here, params={"edit": "true"}).text)
    changed = text.replace("amount > 50", "amount > 90")
    planned = site.post(here, data={"do": "plan", "text": changed}).text
    assert "changes something" in planned and "rebuild" in planned
    assert _text(planned).count("where amount > 90") == 2
    assert _area(planned) == changed
    assert workspace.plan(tmp_path).pending is False, "a plan changes nothing"
    site.post(here, data={"do": "apply", "text": changed})
    assert workspace.plan(tmp_path).pending is True, "the folder has the old text"
    site.post("/pipelines")
    _until(lambda: site.get("/pipelines").text, "up to date")
    assert dataset.to_arrow(where="amount > 90").num_rows == 9


def test_a_wrong_text_is_refused_with_its_line(site: TestClient, workspace: lakeward.Workspace, tmp_path: Path) -> None:
    """And what is applied stays."""
    _apply(workspace, tmp_path, "kept well")
    before = workspace.pipelines.applied()["kept well"].fingerprint
    for text, told in (("pipeline: [", "pipeline.yml:1"), (DAILY.format(name="kept well", least="x y"), "kept")):
        answer = site.post("/pipelines/kept%20well", data={"do": "apply", "text": text})
        assert answer.status_code == 400 and told in _text(answer.text)
    assert site.post("/pipelines/kept%20well", data={"do": "burn"}).status_code == 400
    assert site.get("/pipelines/other").status_code == 404
    assert workspace.pipelines.applied()["kept well"].fingerprint == before


@pytest.mark.usefixtures("worker")
def test_a_job_that_failed_says_why_and_runs_again(site: TestClient, workspace: lakeward.Workspace) -> None:
    """On its page, with its log; the list shows it among those of its status and kind."""
    workspace.create_dataset("main.pages.never", {"id": "long"}).write([{"id": 1}])
    job = Jobs(workspace).add("flip", {"dataset": "main.pages.never", "do": "stage", "stage": "verify"})
    page = _until(lambda: site.get(f"/jobs/{job.id}").text, ">Run it again</button>")
    assert "no flip of dataset main.pages.never is under way" in _text(page)
    assert "lakeward flip start main.pages.never begins one" in _text(page)
    listed = site.get("/jobs", params={"status": "failed", "kind": "flip"}).text
    assert f'href="/jobs/{job.id}"' in listed
    assert f'href="/jobs/{job.id}"' not in site.get("/jobs", params={"status": "succeeded"}).text
    site.post(f"/jobs/{job.id}", data={"do": "retry"})
    _until(lambda: site.get(f"/jobs/{job.id}").text, ">Run it again</button>")
    assert site.get("/jobs/999999").status_code == 404
    assert site.get("/jobs", params={"status": "odd"}).status_code == 404


def test_the_ledger_shows_transactions(site: TestClient, workspace: lakeward.Workspace) -> None:
    """Newest first, of one status, some more of them on request; what was left is recovered by a button."""
    dataset = workspace.create_dataset("main.pages.written", {"id": "long"})
    for number in range(3):
        dataset.write([{"id": number}])
    page = site.get("/ledger", params={"most": 2}).text
    assert page.count('title="main.pages.written"') == 2 and "Show more" in page
    assert "most=4" in page
    assert site.get("/ledger", params={"status": "odd"}).status_code == 400
    assert 'title="main.pages.written"' not in site.get("/ledger", params={"status": "aborted"}).text
    assert "There was nothing to recover." in _text(site.post("/ledger").text)


def _apply(workspace: lakeward.Workspace, project: Path, name: str) -> None:
    (project / "pipelines").mkdir()
    (project / "lakeward.toml").touch()
    (project / "pipelines" / "one.yml").write_text(DAILY.format(name=name, least=50), encoding="utf-8")
    workspace.apply(project)


def _area(page: str) -> str:
    found = re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)
    assert found is not None
    return html.unescape(found.group(1))


def _in_an_hour() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)
