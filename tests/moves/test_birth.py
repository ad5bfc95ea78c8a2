"""Where a table is made: by whatever writes first, in `catalog.schema` or in the legacy namespace, recorded at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.control.identifiers import LEGACY_NAMESPACE, TableIdentifier, home
from lakeward.testing import raise_at
from support.moves import COLUMNS, catalog_of, to_its_home

Opens = Callable[..., lakeward.Workspace]

ESTIMATOR = "from sklearn.linear_model import LinearRegression\n\n\ndef make():\n    return LinearRegression()\n"

PIPELINES = """\
pipeline: {0}
nodes:
  rows: {{source: {0}.s.source}}
  fitted: {{fit: {{input: rows, estimator: "models/e.py:make", features: [id], target: y, model: {0}}}}}
outputs:
  - {{dataset: {0}.s.metrics, from: fitted, strategy: append_always, arm: iceberg}}
  - dataset: {0}.s.output
    from: rows
    strategy: append_always
    arm: iceberg
    expectations: [{{row: {{check: "id > 1", on_fail: quarantine}}}}]
---
pipeline: {0}_scored
nodes:
  rows: {{source: {0}.s.source}}
  scored: {{model: {{input: rows, model: {0}@latest, features: [id], outputs: {{prediction: float}}}}}}
outputs:
  - {{dataset: {0}.s.scored, from: scored, strategy: append_always, arm: iceberg}}
"""

BORN = {"metrics", "output", "output__quarantine", "scored", "ran", "imported", "written", "copied", "flipped"}


def project_of(folder: Path, name: str) -> Path:
    for part in ("pipelines", "models"):
        (folder / part).mkdir()
    for number, text in enumerate(PIPELINES.format(name).split("---\n")):
        (folder / "pipelines" / f"p{number}.yml").write_text(text, encoding="utf-8")
    (folder / "models" / "e.py").write_text(ESTIMATOR, encoding="utf-8")
    (folder / "lakeward.toml").touch()
    return folder


def bear(workspace: lakeward.Workspace, name: str, folder: Path) -> None:
    """Let every place in the product that can be the first to write to an Iceberg table do so."""
    source = workspace.create_dataset(f"{name}.s.source", {"id": "long", "y": "double"}, ["id"], arm="postgres")
    source.write([{"id": number, "y": 2.0 * number} for number in range(40)], mode="append")
    workspace.apply(project_of(folder, name))
    workspace.build(name, f"{name}_scored")
    workspace.run(f"select id from {source.name}", into=f"{name}.s.ran", arm="iceberg")
    (folder / "rows.csv").write_text("id,note\n1,a\n", encoding="utf-8")
    workspace.import_file(f"{name}.s.imported", folder / "rows.csv", arm="iceberg")
    written = workspace.create_dataset(f"{name}.s.written", COLUMNS, ["id"], arm="iceberg")
    written.write([{"id": 1, "note": "a"}], mode="upsert")
    for each in ("copied", "flipped"):
        made = workspace.create_dataset(f"{name}.s.{each}", COLUMNS, ["id"], arm="postgres")
        made.write([{"id": 1, "note": "a"}], mode="append")
    workspace.dataset(f"{name}.s.copied").copy_to("iceberg")
    workspace.flip(f"{name}.s.flipped").run("iceberg", until="backfill")


@pytest.mark.parametrize("in_place", [True, False])
def test_every_writer_makes_its_table_where_the_settings_say(opens: Opens, tmp_path: Path, in_place: bool) -> None:
    name = f"born_{in_place}".lower()
    with opens(iceberg=f"born_in_place = {str(in_place).lower()}") as workspace:
        bear(workspace, name, tmp_path)
        catalog = catalog_of(workspace)
        found = {}
        for dataset in workspace.datasets():
            record = dataset.record
            if record.path.catalog == name and record.path.dataset != "source":
                found[record.path.dataset] = record.identifier
                assert catalog.table_exists(record.identifier.parts), record.name
                assert record.iceberg_namespace == ((name, "s") if in_place else None)
                assert record.identifier == home(record.slugs) or not in_place
    assert set(found) == BORN
    assert {each.namespace for each in found.values()} == {(name, "s") if in_place else LEGACY_NAMESPACE}


def test_single_writers_differ(opens: Opens, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,note\n1,a\n", encoding="utf-8")
    with opens(iceberg='born_in_place = false\nborn_in_place_by_writer = {"dataset.import" = true}') as workspace:
        imported = workspace.import_file("single.s.imported", tmp_path / "rows.csv", arm="iceberg").dataset
        written = workspace.create_dataset("single.s.written", COLUMNS, arm="iceberg")
        written.write([{"id": 1, "note": "a"}], mode="append")
        assert workspace.dataset(imported).record.identifier == TableIdentifier(("single", "s"), "imported")
        assert written.record.identifier.namespace == LEGACY_NAMESPACE


@pytest.mark.parametrize("first", [True, False])
def test_a_first_write_that_was_aborted_is_gone_on_from_whatever_the_settings_say_then(
    opens: Opens, workspace: lakeward.Workspace, first: bool
) -> None:
    """The table that it left is taken, so that there are never two."""
    name = f"aborted.s.first_{first}"
    made = workspace.create_dataset(name, COLUMNS, ["id"], arm="iceberg")
    move = to_its_home(made)
    rows = [{"id": 1, "note": "a"}]
    with opens(raise_at("decide", RuntimeError("lost")), iceberg=f"born_in_place = {str(first).lower()}") as other:
        with pytest.raises(RuntimeError, match="lost"):
            other.dataset(name).write(rows, mode="append")
    assert workspace.moves.places.of(made.record.id).version is None
    with opens(iceberg=f"born_in_place = {str(not first).lower()}") as other:
        other.dataset(name).write(rows, mode="append")
    assert made.record.identifier == (move.target if first else move.source)
    catalog = catalog_of(workspace)
    assert [catalog.table_exists(each.parts) for each in (move.target, move.source)] == [first, not first]
    assert made.to_arrow().num_rows == 1
