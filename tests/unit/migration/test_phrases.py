"""What stages found is told in words, with nothing left out but what is of use to programs alone."""

from __future__ import annotations

import pytest

from lakeward.migration.phrases import told


@pytest.mark.parametrize(
    ("details", "text"),
    [
        ({"rows": 1, "version": 2, "bytes": 577_000}, "version 2, 1 row, 577,000 bytes"),
        ({"epoch": 2, "mode": "dual"}, "mode dual, epoch 2"),
        ({"columns": "a1b2", "lossy": "nothing", "expected_seconds": 2.5, "basis": "2 former backfills"},
         "lossy: nothing, expected to take 2.5 s, going by 2 former backfills"),
        ({"reads": 3, "mismatches": 0, "latency_ratio": 1.2},
         "3 reads compared, 0 differences, reads take 1.2 times as long"),
        ({"mode": "iceberg_native", "compared": {"version": 6, "rows": 10}, "removed": 11},
         "mode iceberg_native, compared (version 6, 10 rows), 11 rows removed"),
        ({"error": "gone", "still_to_come": True}, "gone, still to come yes"),
    ],
)  # fmt: skip
def test_details_are_told_in_words(details: dict[str, object], text: str) -> None:
    assert told(details) == text
