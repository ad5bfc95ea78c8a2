"""The web page without a browser: its headers, its files, its errors, and who may open what."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import lakeward
from lakeward.errors import ExpectationFailed
from lakeward.server.app import create_app
from lakeward.server.web.static_files import STATIC

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def site(workspace: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A browser without a screen."""
    app = create_app(workspace, tmp_path_factory.mktemp("bodies"), page_rows=50, body_limit=1 << 20)
    with TestClient(app, base_url="http://127.0.0.1", headers=HTML, follow_redirects=False) as client:
        yield client


def test_nothing_is_loaded_from_elsewhere(site: TestClient) -> None:
    answer = site.get("/")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["cache-control"] == "no-store"
    loaded = re.findall(r'(?:src|href)="([^"#]*)"', answer.text)
    assert loaded and all(each.startswith("/") and not each.startswith("//") for each in loaded)
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", answer.text)


def test_files_are_kept_until_one_of_them_changes(site: TestClient) -> None:
    (address,) = set(re.findall(r"/static/\w+/parts\.css", site.get("/").text))
    answer = site.get(address, headers={"Accept-Encoding": "gzip"})
    assert answer.content == (STATIC / "parts.css").read_bytes()
    assert "immutable" in answer.headers["cache-control"] and answer.headers["content-encoding"] == "gzip"
    again = site.get(address, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    old = site.get("/static/000000000000/parts.css", headers={"Accept-Encoding": "identity"})
    assert old.content == answer.content and old.headers["cache-control"] == "no-cache"
    for missing in ("nothing.css", "%2e%2e%2fpage.py", "page.js/"):
        assert site.get(f"/static/0/{missing}").status_code == 404


def test_errors_are_pages_for_people_and_documents_for_programs(site: TestClient) -> None:
    page = site.get("/nothing")
    assert page.status_code == 404 and "<h1>Not Found</h1>" in page.text
    part = site.get("/nothing", headers={"HX-Request": "true"})
    assert "<html" not in part.text and part.headers["hx-retarget"] == "#said"
    assert site.get("/nothing", headers={"Accept": "*/*"}).json()["status"] == 404
    assert site.get("/api/v1/datasets/main.x.nothing").json()["title"] == "UnknownObject"


def test_a_link_of_another_site_leads_to_a_page_and_to_nothing_else(site: TestClient) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert site.get("/", headers=link).status_code == 200
    assert site.get("/", headers={**link, "Sec-Fetch-Dest": "iframe"}).status_code == 403
    assert site.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    assert site.get("/api/v1/datasets", headers=link).status_code == 403
    assert site.post("/", headers=link).status_code == 403


def test_the_overview_tells_what_somebody_has_to_look_at(site: TestClient, workspace: lakeward.Workspace) -> None:
    columns = {"id": "long"}
    workspace.create_dataset("main.glance.empty", columns)
    workspace.create_dataset("main.glance.fine", columns).write([{"id": 1}])
    warned = workspace.create_dataset("main.glance.warned", columns)
    warned.expect([{"row": {"check": "id < 5", "on_fail": "warn"}}])
    warned.write([{"id": 9}])
    failing = workspace.create_dataset("main.glance.failing", columns)
    failing.expect([{"row": {"check": "id < 5"}}])
    failing.write([{"id": 1}])
    with pytest.raises(ExpectationFailed):
        failing.write([{"id": 9}])
    part = {"HX-Request": "true", "HX-Target": "standing"}
    for state in ("empty", "fine", "warned", "failing"):
        found = site.get("/", params={"state": state, "q": "main.glance"}, headers=part).text
        assert "<html" not in found
        assert re.findall(r'title="(main\.glance\.\w+)"', found) == [f"main.glance.{state}"]
    failing.write([{"id": 2}])
    found = site.get("/", params={"state": "failing", "q": "main.glance"}, headers=part).text
    assert "No dataset is like that" in found
