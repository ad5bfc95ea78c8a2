"""What comparisons of the arms found: the newest of each kind stay, and every difference that nobody has settled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

import lakeward
from lakeward.control.parity import ParityChecks


def test_old_findings_go_but_for_differences_that_stand(kept_url: str, kept_root: Path, tmp_path: Path) -> None:
    settings = tmp_path / "lakeward.toml"
    settings.write_text("[retention]\ncomparisons = 2\n", encoding="utf-8")
    with lakeward.open(database_url=kept_url, warehouse=kept_root / "warehouse", settings_file=settings) as ws:
        dataset = ws.create_dataset("main.findings.d", {"id": "long"})
        parity, id_ = ParityChecks(ws.database), dataset.record.id

        def record(*found: tuple[str, bool | None]) -> None:
            for kind, equal in found:
                parity.record(id_, 1, kind, equal=equal, rows=1, details={})

        def kept() -> list[tuple[str, bool | None]]:
            return [(each.kind, each.equal) for each in parity.newest(id_, most=100)][::-1]

        def maintained(**how: Any) -> list[tuple[str, int]]:
            report = ws.maintain(dataset.name, older_than=3600, **how)
            assert report.failures == []
            return [(each.kind, each.count) for each in report.removed]

        record(("read", False), ("write", True), ("full", True))  # the difference is settled by what comes after it
        record(("read", False), ("read", None), ("read", True), ("write", True), ("read", True), ("full", False))
        assert maintained() == []  # they are young
        with psycopg.connect(ws.database.libpq_url) as connection:
            query = "UPDATE lakeward.parity_checks SET at = at - interval '2 hours' WHERE dataset_id = %s"
            connection.execute(query, (id_,))
        assert maintained(dry_run=True) == [("comparison", 2)] and len(kept()) == 9
        assert [maintained(), maintained()] == [[("comparison", 2)], []]
        stands = [("read", False), ("read", True), ("write", True), ("read", True), ("full", False)]
        assert kept() == [("write", True), ("full", True), *stands]
        found = parity.mismatch(id_)
        assert found is not None and found.kind == "full"
