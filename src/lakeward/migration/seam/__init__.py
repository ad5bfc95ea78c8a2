"""Where code reaches around the storage layer: every raw access to the row table, and a baseline that only falls."""

from lakeward.migration.seam.baseline import FILE_NAME, Baseline, Change, Verdict, judge, settled
from lakeward.migration.seam.scanning import Access, Survey, Warned, scan, survey
from lakeward.migration.seam.tables import DEFAULT_TABLES

__all__ = [
    "DEFAULT_TABLES",
    "FILE_NAME",
    "Access",
    "Baseline",
    "Change",
    "Survey",
    "Verdict",
    "Warned",
    "judge",
    "scan",
    "settled",
    "survey",
]
