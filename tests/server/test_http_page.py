"""The pages tell of every route and parameter, as they are, and docs/http.md of every status."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from lakeward.server.problems import STATUSES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_http_page", ROOT / "docs" / "make_http_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_routes_is_fresh(generator: ModuleType) -> None:
    for page in generator.PAGES:
        assert page.read_text(encoding="utf-8") == generator.page(page), "run: python docs/make_http_page.py"


def test_every_status_is_told(generator: ModuleType) -> None:
    told = set(map(int, re.findall(r"\b([45]\d\d)\b", (ROOT / "docs" / "http.md").read_text(encoding="utf-8"))))
    assert {status.value for _, status in STATUSES} | {413, 421, 500} <= told
