"""docs/sources.md tells of every connector, option, mode and type as they are."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_tables_are_fresh() -> None:
    spec = importlib.util.spec_from_file_location("make_sources_page", DOCS / "make_sources_page.py")
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    page = generator.PAGE.read_text(encoding="utf-8")
    assert page == generator.page(), "run: python docs/make_sources_page.py"
    assert all(table in page for table in generator.sections().values())


def test_the_links_lead_somewhere() -> None:
    page = (DOCS / "sources.md").read_text(encoding="utf-8")
    assert all((DOCS / link).exists() for link in re.findall(r"\]\(([^)#]+)", page))
