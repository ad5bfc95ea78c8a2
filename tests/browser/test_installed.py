"""Says aloud that chromium is missing: a run without its tests looks like one with them."""

from __future__ import annotations

import shutil
import warnings

from lakeward.server.web.static_files import STATIC


def test_chromium_is_installed() -> None:
    if not shutil.which("chromium"):
        warnings.warn(
            "the page is not looked at with a browser: there is none (apt-get install chromium)", stacklevel=1
        )


def test_files_of_others_are_in_place() -> None:
    there = {each.name for each in (STATIC / "vendor").glob("*.js")}
    missing = {"htmx.js", "cytoscape.js", "cytoscape-dagre.js", "echarts.js"} - there
    if missing:
        warnings.warn(f"graphs and charts are not looked at: {', '.join(missing)} missing (make setup)", stacklevel=1)
