"""A build that fits a model is killed: the version is there if the ledger says that the build is, and only then."""

from __future__ import annotations

from pathlib import Path

import lakeward
from support.crashes import Driver, unclean

ESTIMATOR = "from sklearn.linear_model import LinearRegression\n\n\ndef make():\n    return LinearRegression()\n"
PIPELINE = """\
pipeline: {name}
nodes:
  rows: {{source: {source}}}
  trained: {{fit: {{input: rows, estimator: "models/e.py:make", features: [x], target: y, model: {name}}}}}
outputs:
  - {{dataset: {source}_metrics, from: trained, strategy: append_always, arm: {arm}}}
"""


def test_a_version_whose_build_was_killed_never_was(ws: lakeward.Workspace, driver: Driver, tmp_path: Path) -> None:
    name = "fit_killed"
    rows = ws.create_dataset(f"main.fit.{name}", {"x": "double", "y": "double"}, arm="postgres")
    rows.write([{"x": float(number), "y": 2.0 * number} for number in range(40)])
    for folder, file, text in (
        ("pipelines", "p.yml", PIPELINE.format(name=name, source=rows.name, arm="iceberg")),
        ("models", "e.py", ESTIMATOR),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text(text)
    (tmp_path / "lakeward.toml").touch()
    ws.apply(tmp_path)
    assert driver.run(build=name, fault=["crash", "audit", 1]).killed()
    # At once, and before anything is recovered: the ledger's commit is the model's.
    assert ws.models(name) == []
    ws.recover()
    assert ws.models(name) == []
    assert not ws.build(name)[0].up_to_date
    assert [each.reference for each in ws.models(name)] == [f"{name}@1"]
    assert ws.dataset(f"{rows.name}_metrics").row_count == 6
    assert unclean(ws, [rows.name, f"{rows.name}_metrics"]) == []
    with ws.database.driver() as connection:
        kept = connection.execute("SELECT count(*) FROM lakeward.models WHERE name = %s", (name,)).fetchone()
    assert kept == (1,)
