"""A rename changes a human name and nothing else; whoever uses the old one is told the new one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.control.names import quote_level
from lakeward.errors import InvalidName, NameTaken, SpecError, UnknownObject, UsageError
from support.ledger import rows

MakeDataset = Callable[..., lakeward.Dataset]

PIPELINE = """pipeline: copied
nodes:
  raw: {{source: {source}}}
outputs:
  - {{dataset: {output}, from: raw, strategy: replace}}
"""


def files(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_only_the_name_changes(
    ws: lakeward.Workspace, dataset: MakeDataset, place: str, warehouse: Path, arm: str
) -> None:
    made = dataset(arm)
    before, digest, kept = made.record, made.digest(version=1), files(warehouse)
    catalog = place.partition(".")[0]
    ws.rename_dataset(made.name, "Orders 2024")
    ws.rename_schema(place, f"{catalog}.Sales EU")
    ws.rename_catalog(catalog, f"{catalog} ÄÖ")
    now = ws.dataset(f"{catalog} ÄÖ.Sales EU.Orders 2024")
    assert (now.record.id, now.record.slugs, now.record.identifier) == (before.id, before.slugs, before.identifier)
    assert files(warehouse) == kept and now.digest(version=1) == digest
    assert made.write([{"id": 9, "note": "by the old handle"}]).version == 3 == now.version
    with pytest.raises(UnknownObject, match=f"it was renamed, and is {catalog} ÄÖ.Sales EU.Orders 2024 now"):
        ws.dataset(f"{place}.orders")
    log = (
        "SELECT action, before ->> 'name', after ->> 'name' FROM lakeward.audit_log WHERE action ~ 'rename' ORDER BY id"
    )
    assert rows(ws.database, log)[-3:] == [
        ("dataset.rename", "orders", "Orders 2024"),
        ("schema.rename", "s", "Sales EU"),
        ("catalog.rename", catalog, f"{catalog} ÄÖ"),
    ]


def test_a_free_name_is_another_ones_with_another_slug(
    ws: lakeward.Workspace, dataset: MakeDataset, place: str
) -> None:
    """Also if that happens time after time, until no slug is left that the name alone makes."""
    slugs = set()
    for number in range(6):
        made = ws.create_dataset(f"{place}.orders", {"id": "long"})
        slugs.add(made.record.slugs[2])
        assert ws.dataset(f"{place}.orders").record.id == made.record.id, "the name wins over a slug"
        ws.rename_dataset(made.name, f"old {number}")
    assert len(slugs) == 6 and min(slugs, key=len) == "orders"
    again = ws.rename_dataset(f"{place}.old 3", "orders")
    assert ws.dataset(f"{place}.orders").record.id == again.id
    with pytest.raises(UnknownObject, match=f"is {place}.orders now"):
        ws.dataset(f"{place}.old 3")


def test_refused_names_and_those_that_change_nothing(ws: lakeward.Workspace, dataset: MakeDataset, place: str) -> None:
    made, other = dataset("postgres"), dataset("postgres", "Äpfel")
    for twin in ("orders", "ORDERS"):
        with pytest.raises(NameTaken, match="can't be called"):
            ws.rename_dataset(other.name, twin)
        with pytest.raises(NameTaken):
            ws.names("dataset").explain_rename(other.name, twin)
    with pytest.raises(NameTaken, match="Unicode form"):
        ws.rename_dataset(made.name, "A\u0308PFEL")
    for bad in (" x", "x" * 256, "a\tb", ""):
        with pytest.raises(InvalidName):
            ws.rename_dataset(made.name, bad)
    with pytest.raises(UsageError, match="it stays in its schema"):
        ws.rename_dataset(made.name, "main.other.orders")
    assert ws.names("dataset").explain_rename(made.name, "orders") == []
    assert ws.rename_dataset(made.name, "orders").path[-1] == "orders"
    assert ws.rename_dataset(made.name, "Orders").path[-1] == "Orders", "another case is another name for itself"
    assert ws.rename_dataset(f"{place}.Orders", f"{place}.orders2").path[-1] == "orders2"
    quoted = ws.rename_dataset(f"{place}.orders2", '"main.other.orders"')
    assert ws.dataset(quoted.name).record.path.dataset == "main.other.orders"


def test_a_pipeline_that_uses_an_old_name_is_told_the_new_one(
    ws: lakeward.Workspace, dataset: MakeDataset, place: str, tmp_path: Path
) -> None:
    dataset("postgres")
    (tmp_path / "lakeward.toml").write_text("", encoding="utf-8")
    (tmp_path / "pipelines").mkdir()
    file = tmp_path / "pipelines" / "copied.yml"
    file.write_text(PIPELINE.format(source=f"{place}.orders", output=f"{place}.copies"), encoding="utf-8")
    ws.apply(tmp_path)
    assert ws.build("copied")[0].transactions[0].row_count == 5
    ws.rename_dataset(f"{place}.copies", "Copies")
    ws.rename_dataset(f"{place}.Copies", "copies of orders")
    with pytest.raises(UnknownObject, match=r"is .*copies of orders now"):
        ws.build("copied", full=True)
    with pytest.raises(SpecError, match=r"copied\.yml:5: .*copies of orders now"):
        ws.plan(tmp_path)
    file.write_text(PIPELINE.format(source=f"{place}.orders", output=f'"{place}.x"'), encoding="utf-8")
    renamed = PIPELINE.format(source=f"{place}.orders", output=f"{place}.copies of orders")
    file.write_text(renamed, encoding="utf-8")
    ws.apply(tmp_path)
    assert ws.build("copied", full=True)[0].transactions[0].version == 2, "the same dataset goes on"
    ws.rename_dataset(f"{place}.orders", "raw orders")
    with pytest.raises(SpecError, match=r"copied\.yml:3: .*raw orders now"):
        ws.plan(tmp_path)
    file.unlink()
    ws.apply(tmp_path)


ODD = ("../../esc", "file:///x", "C:\\x", "()", "a.b", 'x"; drop table t', "é" * 127)


def test_n01_n02_n03_s01_odd_names_at_every_level(ws: lakeward.Workspace, place: str, warehouse: Path) -> None:
    """Made, written, renamed, listed, dropped, brought back, flipped: each keeps its name and lies in the warehouse."""
    catalog = place.partition(".")[0]
    for number, name in enumerate(ODD):
        arm, other = ("iceberg", "postgres") if number % 2 else ("postgres", "iceberg")
        top = f"{catalog} {name}"[:250] if len(name) < 100 else name
        levels = [quote_level(each) for each in (top, name, name)]
        ws.create_schema(".".join(levels[:2]))
        made = ws.create_dataset(".".join(levels), {"id": "long"}, ["id"], arm=arm)
        made.write([{"id": number}])
        ws.drop_dataset(made.name)
        assert ws.undrop_dataset(made.name) == [made.name]
        after = ODD[number - 1]
        renamed = ws.rename_dataset(made.name, quote_level(after))
        schema = ws.rename_schema(".".join(levels[:2]), quote_level(after))
        assert (renamed.path[-1], schema.path[-1]) == (after, after)
        ws.drop_catalog(quote_level(top), cascade=True)
        assert schema.name in [each.what.name for each in ws.schemas(dropped=True)]
        full = ".".join([levels[0], quote_level(after), quote_level(after)])
        assert ws.undrop_catalog(quote_level(top)) == [full]
        assert ws.dataset(full).to_arrow()["id"].to_pylist() == [number]
        if number < 2:
            ws.flip(full).run(to=other)
            assert ws.dataset(full).arm == other and ws.dataset(full).row_count == 1
    outside = [path for path in warehouse.parent.rglob("*") if path.suffix in (".parquet", ".avro", ".json")]
    assert outside and all(path.is_relative_to(warehouse) for path in outside)
