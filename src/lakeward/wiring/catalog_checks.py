"""What `lakeward doctor` says of the Iceberg catalog: what it can do, and which tables have two names in it."""

from __future__ import annotations

from collections.abc import Iterator

from lakeward.errors import LakewardError
from lakeward.storage.table import table_ref
from lakeward.wiring.check import Check
from lakeward.wiring.workspace import Workspace


def catalog_checks(workspace: Workspace, *, probe: bool) -> Iterator[Check]:
    """Look at the catalog.

    Args:
        workspace: whose.
        probe: try what it can do, on a scratch table, instead of telling what was found before.
    """
    receiver = workspace.storage.routing.arm("iceberg").receiver()
    try:
        known = receiver.catalog(probe=probe)
        if known is not None:
            step = None if known.abilities is not None else "lakeward doctor --probe"
            yield Check("catalog", True, known.in_words(), step)
        twice = receiver.second_names([table_ref(dataset.record) for dataset in workspace.datasets()])
    except LakewardError as error:
        yield Check("catalog", False, error.message, error.next_step)
        return
    for dataset, names in twice.items():
        also = ", ".join(map(str, names))
        yield Check(
            "table names",
            False,
            f"the table of dataset {dataset} is called {also}, too: who writes there splits it",
            f"drop {also} in the catalog without purge, if it holds nothing that you need",
        )
