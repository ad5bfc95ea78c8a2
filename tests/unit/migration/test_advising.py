"""The adviser, by table: what speaks for a flip, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from lakeward.migration.advising import Facts, advise
from lakeward.storage.extent import Extent

WEEK = {"days": 7.0, "writes": 7, "rows_written": 70_000}
OFTEN = {"days": 7.0, "writes": 700, "rows_written": 1400}
READS = {"reads": 50, "seconds": {"postgres": 1.0, "iceberg": 0.25}}


SCANS = {"kinds": {"scan": 150, "filtered": 50, "point": 50}}
POINTS = {"kinds": {"scan": 40, "point": 60}}


def facts(arm: str, rows: int, known: dict[str, Any], **extent: int) -> Facts:
    return Facts("m.s.d", arm, rows, **known, extent=Extent(**extent))


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (facts("postgres", 2_000_000, WEEK), "2,000,000 rows, written with 10,000 rows at a time: scans"),
        (facts("postgres", 2_000_000, {**WEEK, "writes": 0}), "2,000,000 rows, not written in 7 days"),
        (facts("postgres", 2_000_000, OFTEN), None),
        (facts("postgres", 900_000, WEEK), None),
        (facts("postgres", 200_000, WEEK, replaced_rows=300_000), "keeps 300,000 replaced rows beside 200,000 live"),
        (facts("postgres", 200_000, WEEK, replaced_rows=100_000), None),
        (facts("postgres", 200_000, OFTEN, replaced_rows=300_000), None),
        (facts("postgres", 10, {**OFTEN, **READS}), "of 50 compared reads the median took 0.25 s on iceberg"),
        (facts("postgres", 10, {**OFTEN, **READS, "reads": 5}), None),
        # What was measured is stronger than a rule of thumb.
        (facts("iceberg", 50_000, {**OFTEN, **READS}), None),
        (facts("iceberg", 50_000, OFTEN), "50,000 rows, written 100 times a day with 2 rows each"),
        (facts("iceberg", 50_000, WEEK), None),
        (facts("iceberg", 5_000_000, OFTEN), None),
        (facts("iceberg", 5_000_000, OFTEN, data_files=10, delete_files=30), "30 delete files on 10 data files"),
        (facts("iceberg", 5_000_000, WEEK, data_files=10, delete_files=30), None),
        # How it is read: scans, or single rows.
        (facts("postgres", 200_000, {**WEEK, **SCANS}), "200,000 rows, and 80% of 250 reads scan them, with 7 writes"),
        (facts("postgres", 200_000, {**OFTEN, **SCANS}), None),
        (facts("postgres", 20_000, {**WEEK, **SCANS}), None),
        (facts("postgres", 2_000_000, {**WEEK, "kinds": {"since": 90, "point": 10}}), None),
        (facts("postgres", 2_000_000, {**WEEK, "kinds": {"since": 9}}), "written with 10,000 rows at a time"),
        (facts("iceberg", 5_000, {**WEEK, **POINTS}), "5,000 rows, and 60% of 100 reads ask for single ones"),
        (facts("iceberg", 50_000, {**WEEK, **POINTS}), None),
        (facts("iceberg", 5_000, {**WEEK, **SCANS}), None),
        (facts("iceberg", 5, {"days": 0.01, "writes": 3, "rows_written": 5}), None),
    ],
)
def test_advice(known: Facts, reason: str | None) -> None:
    advice = advise(known)
    if reason is None:
        assert advice is None
        return
    assert advice is not None and reason in advice.reason
    assert advice.to != known.arm
    assert advice.facts["rows"] == known.rows


def test_only_what_was_measured_is_told() -> None:
    advice = advise(facts("postgres", 2_000_000, WEEK))
    assert advice is not None
    assert advice.to_json() == {
        "dataset": "m.s.d",
        "to": "iceberg",
        "reason": advice.reason,
        "facts": {"rows": 2_000_000, "days": 7.0, "writes": 7, "rows_written": 70_000},
        "not_known": [
            "how readers read it: fewer than 20 reads were counted",
            "how long the other arm would take: no reader is set to shadow both arms",
        ],
    }
