"""Writes the table of routes of `docs/http.md` from the API's own description. A test fails if it is stale.

python docs/make_http_page.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

from lakeward.server.app import create_app
from lakeward.server.routing import PREFIX
from lakeward.wiring.workspace import Workspace

PAGE = Path(__file__).with_name("http.md")
BEGIN, END = "<!-- routes: written by docs/make_http_page.py -->", "<!-- end -->"


def routes() -> str:
    """Return the table."""
    # Nothing is asked of the workspace before a request comes.
    app = create_app(cast(Workspace, None), Path(), page_rows=1, body_limit=1)
    lines = ["| | route | parameters |", "| --- | --- | --- |"]
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            if path.startswith(PREFIX):
                names = [f"`{each['name']}`" for each in operation.get("parameters", []) if each["in"] == "query"]
                route = f"`{method.upper()} {path.removeprefix(PREFIX)}`"
                lines.append(f"| {operation['summary']} | {route} | {', '.join(names)} |")
    return "\n".join(lines)


def page() -> str:
    """Return the whole page with a fresh table."""
    written = PAGE.read_text(encoding="utf-8")
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{routes()}\n{END}", written, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
