"""Code of the page "Open elsewhere", run as it is copied: with and without a login, on both arms."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pyarrow.csv
import pyarrow.parquet
import pytest

import lakeward
from lakeward.access.guard import itself
from lakeward.access.roles import Role
from lakeward.cli.app import main
from lakeward.server.app import create_app
from lakeward.server.logins import Logins
from lakeward.server.rates import Rates
from support.serving import serving


@pytest.mark.parametrize("login", [False, True], ids=["open", "login"])
@pytest.mark.parametrize(("arm", "last"), [("postgres", "it's"), ("iceberg", '"a.b/ü"')])
def test_each_opens_the_rows(
    ws: lakeward.Workspace,
    catalog: str,
    arm: str,
    last: str,
    login: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = f"{catalog}.sales.{last}"
    with itself():
        made = ws.create_dataset(name, {"id": "long"}, ["id"], arm=arm)
        made.write([{"id": each} for each in range(5)])
        made.write([{"id": 3}], mode="delete")
        _, token = ws.access.add_token("vera", role=Role.VIEWER, on=catalog)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAKEWARD_TOKEN", token)
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", ws.database.libpq_url)
    logins = Logins(ws.access, Rates(None), hours=1) if login else None
    with (
        serving(create_app(ws, tmp_path, page_rows=10, body_limit=1 << 20, logins=logins)) as url,
        httpx.Client(base_url=url, headers={"Accept": "text/html"}, timeout=60) as client,
    ):
        if login:
            assert client.post("/login", data={"token": token}).status_code == 303
        page = client.get(f"/datasets/{name.replace('/', '%2F')}", params={"tab": "open"}).raise_for_status().text
        shown = [
            (unescape(title), unescape(code))
            for title, code in re.findall(r"<figcaption>([^<]*)<button.*?<code[^>]*>(.*?)</code>", page, re.DOTALL)
        ]
        for title, code in shown:
            ids = opened(title, code)
            assert ids is None or sorted(ids) == [0, 1, 2, 4], (title, code)
    titles = {title for title, _ in shown}
    assert ({"PyIceberg", "DuckDB", "Spark"} <= titles) == (arm == "iceberg")
    # What is on the server's machine is nobody's who has to log in.
    assert any("lakeward.open(" in code for _, code in shown) == (not login)


def opened(title: str, code: str) -> list[int] | None:
    """Run it, and return the rows' ids; None: its tool is not there without the internet, or is another process."""
    names: dict[str, Any] = {}
    if title.startswith("Py"):
        exec(compile(code, title, "exec"), names)
        return list((names["rows"] if "rows" in names else names["table"])["id"].to_pylist())
    if title == "Command line":
        assert main(shlex.split(code)[1:]) == 0
        return list(pyarrow.parquet.read_table("rows.parquet")["id"].to_pylist())
    if title.startswith("curl") and shutil.which("curl"):
        subprocess.run(["sh", "-ec", code], check=True, capture_output=True)
        return list(pyarrow.csv.read_csv("rows.csv")["id"].to_pylist())
    return None
