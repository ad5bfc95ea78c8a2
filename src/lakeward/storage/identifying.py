"""Rows that came with an existing table get their identity columns before anything but reading is done with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import UsageError
from lakeward.storage.existing import IDENTIFY, TAKE
from lakeward.storage.requests import BuildResult, Output

ARM = "iceberg"

FOREIGN = ("adopt", "renumber")
"""The verbs that take in what another engine committed, see `lakeward.storage.foreign`."""

Run = Callable[..., BuildResult]
"""`WriteProtocol.run`."""


def identify_first(tree: Tree, run: Run, outputs: Sequence[Output], writer: str) -> None:
    """Do that for each dataset that a build writes, copies or compacts, as a version of its own.

    What takes in another engine's rows reads them all, and numbers them itself.

    Raises:
        UsageError: the table was not taken to the end.
    """
    for output in outputs:
        if output.dataset.unnumbered and output.verb not in (TAKE, IDENTIFY, *FOREIGN):
            identify(tree, run, output.dataset, writer)


def identify(tree: Tree, run: Run, dataset: DatasetRecord, writer: str) -> None:
    """Write the rows of a dataset anew with the numbers that they were read with; nothing if that is done.

    Args:
        tree: of the workspace.
        run: runs a build.
        dataset: which one.
        writer: the named place in the product for which it is done.

    Raises:
        UsageError: the table was not taken to the end.
    """
    record = tree.by_id(dataset.id)
    if not record.unnumbered:
        return
    if record.head_version == 0:
        raise UsageError(
            f"the Iceberg table {record.identifier} has not come under dataset {record.name} yet",
            safe="nothing was changed",
            next_step=f"lakeward dataset adopt {record.identifier} --as {record.name}",
            dataset=record.name,
        )
    run([Output(record, IDENTIFY)], writer=writer, kind="compact", arm=ARM)
    tree.numbered(record.id)
