"""Writes the tables of routes of the pages about them from the API's own description. A test fails if one is stale.

python docs/make_http_page.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

from lakeward.server.app import create_app
from lakeward.server.routes.lakehouse import PREFIX as LAKEHOUSE
from lakeward.server.routing import PREFIX
from lakeward.wiring.workspace import Workspace

DOCS = Path(__file__).parent
PAGES = {DOCS / "http.md": PREFIX, DOCS / "lakehouse.md": LAKEHOUSE}
"""What the paths begin with that a page tells of."""

BEGIN, END = "<!-- routes: written by docs/make_http_page.py -->", "<!-- end -->"


def routes(prefix: str) -> str:
    """Return the table of the routes whose paths begin so."""
    # Nothing is asked of the workspace before a request comes.
    app = create_app(cast(Workspace, None), Path(), page_rows=1, body_limit=1)
    lines = ["| | route | parameters |", "| --- | --- | --- |"]
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            if path.startswith(prefix):
                names = [f"`{each['name']}`" for each in operation.get("parameters", []) if each["in"] == "query"]
                route = f"`{method.upper()} {path.removeprefix(PREFIX)}`"
                lines.append(f"| {operation['summary']} | {route} | {', '.join(names)} |")
    return "\n".join(lines)


def page(path: Path) -> str:
    """Return a whole page with a fresh table."""
    fresh = f"{BEGIN}\n{routes(PAGES[path])}\n{END}"
    return re.sub(f"{BEGIN}.*?{END}", lambda _: fresh, path.read_text(encoding="utf-8"), flags=re.DOTALL)


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(page(each), encoding="utf-8")
