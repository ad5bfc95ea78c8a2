"""Values as text and as JSON."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

from lakeward.cli.text import MAX_CELL, cell
from lakeward.types.plain_json import json_value


def test_cells_are_short_and_harmless() -> None:
    assert cell(None) == "–"
    assert cell(b"\x00\xff") == "00ff"
    assert cell(bytes(1000)) == f"{'00' * 20}… (1,000 bytes)"
    assert cell("[red]x\x1b[2J\n") == "[red]x\\x1b[2J\\n"
    assert len(cell("y" * 500)) == MAX_CELL


def test_json_loses_nothing() -> None:
    values = {
        "nan": float("nan"),
        "big": 2**63 - 1,
        "decimal": Decimal("1.10"),
        "at": dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
        "bytes": b"\x00\xff",
        "nested": [{"d": Decimal("0.10")}],
    }
    assert json.loads(json.dumps(json_value(values), allow_nan=False)) == {
        "nan": "nan",
        "big": 2**63 - 1,
        "decimal": "1.10",
        "at": "2024-01-02T03:04:05.000006+00:00",
        "bytes": "AP8=",
        "nested": [{"d": "0.10"}],
    }
