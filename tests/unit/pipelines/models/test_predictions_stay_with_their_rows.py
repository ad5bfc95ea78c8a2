"""Each prediction stands beside its own row, whatever the order, the labels and the size of a batch (M01, M02)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from lakeward.pipelines.models.registered import ModelVersion

Build = Callable[..., lakeward.Dataset]
Add = Callable[..., ModelVersion]

ECHO = "def f(batch):\n    return [2 * each for each in batch.column('id').to_pylist()]\n"

LABELLED = """
import numpy

class Series:
    def __init__(self, values, index):
        self.values, self.index = numpy.array(values), index

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __len__(self):
        return len(self.values)


def f(batch):
    values = [2 * each for each in batch.column('id').to_pylist()]
    return Series(values, {index})
"""

REVERSED = """
import pyarrow

def f(batch):
    turned = batch.take(list(reversed(range(batch.num_rows))))
    doubled = [2 * each for each in turned.column('id').to_pylist()]
    return {'y': doubled, '__source_row_index__': turned.column('__source_row_index__')}
"""


def fill(rows: lakeward.Dataset, *ids: int) -> None:
    rows.write([{"id": each, "v": float(each), "t": str(each)} for each in ids])


def pairs(dataset: lakeward.Dataset) -> list[tuple[int, float, float]]:
    table = dataset.to_arrow().to_pylist()
    return [(row["id"], row["v"], row["y"]) for row in table]


@pytest.mark.parametrize(
    ("body", "features"),
    [
        (ECHO, "id:long,v:double"),
        (LABELLED.replace("{index}", "range(len(values))"), "id:long,v:double"),
        (LABELLED.replace("{index}", "list(reversed(range(len(values))))"), "id:long,v:double"),
        (REVERSED, "id:long,v:double,__source_row_index__:long"),
    ],
    ids=["list", "labels", "labels backwards", "rows backwards"],
)
@pytest.mark.parametrize("batch_rows", [1, 3, 64])
def test_m01_labels_and_order_are_nothing_to_go_by(
    rows: lakeward.Dataset, add: Add, build: Build, body: str, features: str, batch_rows: int
) -> None:
    fill(rows, 50, 10, 40, 20, 30)
    add(body, features=features)
    found = pairs(build(where="id <> 40", batch_rows=batch_rows))
    assert sorted(found) == [(each, float(each), 2.0 * each) for each in (10, 20, 30, 50)]


@pytest.mark.parametrize("rows_in", [0, 1, 63, 64, 65, 129])
def test_m02_every_row_is_predicted_and_an_empty_batch_never_asked_for(
    rows: lakeward.Dataset, add: Add, build: Build, rows_in: int
) -> None:
    fill(rows, 1, *range(10, 10 + rows_in))
    add("def f(batch):\n    assert 0 < batch.num_rows <= 64\n    return [2 * x for x in batch['id'].to_pylist()]\n")
    out = build(where="id > 1")
    assert sorted(pairs(out)) == [(each, float(each), 2.0 * each) for each in range(10, 10 + rows_in)]
    assert str(out.to_arrow().schema.field("y").type) == "double"
