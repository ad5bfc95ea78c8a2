"""Drops what is in the tree: waits for writers under way, and lets nobody commit to what is dropped.

    open   the slot of each dataset is taken, in the order of their ids, as for any write; this makes no version
    mark   one Postgres transaction ends those transactions, and marks everything as dropped, or nothing

Killed before the mark, nothing is dropped, and recovery ends the transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lakeward.clock import Faults, Ids
from lakeward.control.drops import Drops
from lakeward.control.ledger import Ledger
from lakeward.control.objects import Drop, Objects, TreeObject
from lakeward.control.records import Intent, OpenTransaction
from lakeward.control.slots import Slots
from lakeward.errors import LakewardError, UsageError

WRITER = "tree.drop"

POINTS = ("drop:opened", "drop:marked")
"""Every name that `Faults.at` is called with here, in order."""


class Dropping:
    """Drops catalogs, schemas and datasets.

    Args:
        objects: looks up what is in them.
        drops: marks them.
        ledger: holds the transactions.
        slots: hands out the datasets' slots.
        recover: tidies up what dead processes left of a dataset.
        faults: called between the steps.
        ids: makes build ids.
    """

    def __init__(
        self,
        objects: Objects,
        drops: Drops,
        ledger: Ledger,
        slots: Slots,
        recover: Callable[[int], object],
        faults: Faults,
        ids: Ids,
    ) -> None:
        self._objects = objects
        self._drops = drops
        self._ledger = ledger
        self._slots = slots
        self._recover = recover
        self._faults = faults
        self._ids = ids

    def datasets(self, what: TreeObject, *, cascade: bool = False) -> dict[int, str]:
        """Return the full names of the datasets that would be dropped, by id.

        Args:
            what: a live object.
            cascade: with all that is live in it.

        Raises:
            UsageError: something live is in it, and is not to be dropped with it.
        """
        inside = self._objects.inside(what)
        del inside[what.level][what.id]
        live = [f"{level} {name}" for level, names in inside.items() for name in names.values()]
        if live and not cascade:
            raise UsageError(
                f"{what.level} {what.name} is not empty: in it {'is' if len(live) == 1 else 'are'} {', '.join(live)}",
                safe="nothing was dropped",
                next_step="drop those first, or all of it at once: --cascade",
                inside=live,
            )
        return inside["dataset"] if what.level != "dataset" else {what.id: what.name}

    def drop(self, what: TreeObject, actor: str, *, cascade: bool = False) -> Drop:
        """Drop a live object: all of it in one instant, or nothing.

        Args:
            what: which one.
            actor: who does it, for the audit log.
            cascade: with all that is live in it.

        Raises:
            UsageError: it is not empty, and `cascade` is False.
            LockTimeout: a writer did not end in time.
            Diverged: another engine moved the table of one of its datasets.
            ConflictError: a flip or backfill is under way, or something was made in it meanwhile.
        """
        build_id, held = self._ids.new(), list[OpenTransaction]()
        names = self.datasets(what, cascade=cascade)
        with self._ledger.heartbeat(held):
            try:
                # By id, as builds take them, so that two that share datasets can't wait for each other in a circle.
                for dataset_id, name in sorted(names.items()):
                    intent = Intent(dataset_id, name, "route", "drop", build_id, WRITER)
                    held.append(self._slots.take(intent, partial(self._recover, dataset_id)))
                self._faults.at("drop:opened")
                dropped = self._drops.drop(what, held, actor)
            except BaseException as error:
                # If it was done after all, this finds nothing to end.
                for opened in held:
                    self._ledger.abort(opened.id, opened.fence, _reason(error))
                raise
        self._faults.at("drop:marked")
        return dropped


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error.message if isinstance(error, LakewardError) else error}"
