"""Whether the arms of a workspace agree: what `Workspace.comparisons` offers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from lakeward.access.guard import require
from lakeward.control.audit import note
from lakeward.control.parity import KINDS, ParityCheck, Tally
from lakeward.errors import UnknownObject
from lakeward.migration import accepting, resyncing
from lakeward.migration.accepting import Rule
from lakeward.migration.checking import Check, check
from lakeward.migration.comparing import Verified, verify
from lakeward.migration.directions import direction_to
from lakeward.migration.options import Options
from lakeward.migration.rechecking import Rechecked, recheck
from lakeward.migration.stage import Details, Rooms

Tell = Callable[[str, int, int | None], None]
"""Is told what is done, how many rows so far, and of how many, if that is known."""


def _silent(_what: str, _rows: int, _total: int | None) -> None:
    """Tell nobody."""


class Comparisons:
    """Compares the arms of a workspace's datasets, and says what a flip would do to them.

    Args:
        rooms: the parts of the workspace.
        actor: says who asks, for the log.
    """

    def __init__(self, rooms: Rooms, actor: Callable[[], str]) -> None:
        self._rooms = rooms
        self._actor = actor

    def check(self, name: str, to: str | None = None, tell: Tell = _silent) -> Check:
        """Say what would become of a dataset's real values on another arm, and all else that a flip needs.

        Reads all rows of the head; changes nothing.

        Args:
            name: of the dataset.
            to: the arm; None: where its flip goes, else the one that does not serve it.
            tell: is told of progress.

        Raises:
            UnknownObject: there is no such dataset or arm.
        """
        dataset = self._rooms.tree.dataset(name)
        flip = self._rooms.flips.active(dataset.id)
        other = {"postgres": "iceberg", "iceberg": "postgres"}[dataset.route.primary_arm]
        return check(self._rooms, dataset, direction_to(to or (flip.to if flip is not None else other)), tell)

    def found(
        self, name: str, kind: str | None = None, *, before: int | None = None, most: int = 20
    ) -> list[ParityCheck]:
        """Return what comparisons of a dataset's arms have found, newest first.

        Args:
            name: of the dataset.
            kind: `write`, `read` or `full`; None: all.
            before: the `id` of one: only those before it.
            most: so many at most.

        Raises:
            UnknownObject: there is no such dataset or kind.
        """
        if kind is not None and kind not in KINDS:
            raise UnknownObject.among("kind of comparison", kind, KINDS)
        return self._rooms.parity.newest(self._rooms.tree.dataset(name).id, kind, before=before, most=most)

    def tally(self, name: str) -> Tally | None:
        """Count what comparisons have found since the dataset's newest flip began; None: it never had one."""
        dataset = self._rooms.tree.dataset(name)
        flip = self._rooms.flips.newest(dataset.id)
        return None if flip is None else self._rooms.parity.tally(dataset.id, flip.started_at, ("postgres", "iceberg"))

    def verify(self, name: str) -> Verified:
        """Compare all rows of a dataset on every arm that holds its head, and keep what was found.

        Raises:
            ParityMismatch: the arms differ, with samples of the rows by key.
        """
        dataset = self._rooms.tree.dataset(name)
        require("parity.check", dataset.slugs, dataset.name)
        return verify(self._rooms, dataset)

    def recheck(
        self, *names: str, older_than: float = 0.0, tell: Callable[[str], None] | None = None
    ) -> list[Rechecked]:
        """Compare all rows of mirrored datasets that were not compared so for `older_than` seconds.

        Args:
            names: which; none: all that are mirrored.
            older_than: seconds.
            tell: is told which dataset is compared now.

        Raises:
            UsageError: one of those that were named is not mirrored.
        """
        datasets = [self._rooms.tree.dataset(name) for name in dict.fromkeys(names)]
        for each in datasets:
            require("parity.check", each.slugs, each.name)
        if not datasets:
            require("parity.check")
        return recheck(self._rooms, datasets, older_than, tell or (lambda _name: None))

    def explain_resync(self, name: str) -> list[str]:
        """Return what `resync` would do, each action literally."""
        return resyncing.explain(self._rooms, self._rooms.tree.dataset(name))

    def resync(self, name: str, tell: Tell = _silent, options: Options | None = None) -> Details:
        """Remove the copy of a dataset that does not serve, and make a new one; see `resyncing.resync`."""
        dataset = self._rooms.tree.dataset(name)
        require("flip.run", dataset.slugs, dataset.name)
        done = resyncing.resync(self._rooms, dataset, self._actor(), tell, options)
        note(self._rooms.tree.database, None, "flip.run", dataset.name, None, {"stage": "resync"}, dataset.slugs)
        return done

    def rules(self, name: str) -> list[Rule]:
        """Return the rules by which differences in columns of a dataset are accepted, also those that have expired."""
        return accepting.rules_of(self._rooms, self._rooms.tree.dataset(name))

    def ignore(self, name: str, column: str, *, reason: str, until: datetime, owner: str | None = None) -> Rule:
        """Accept differences between the arms in a column until a moment. Missing rows are never accepted.

        Args:
            name: of the dataset.
            column: which one; no part of the key.
            reason: why.
            until: when they count again.
            owner: who says so; None: whoever asks.

        Raises:
            SchemaError, UsageError: see `accepting.ignore`.
        """
        dataset = self._rooms.tree.dataset(name)
        return accepting.ignore(
            self._rooms, dataset, column, reason=reason, until=until, actor=self._actor(), owner=owner
        )

    def count_again(self, name: str, column: str) -> None:
        """Take the rule of a column away.

        Raises:
            UnknownObject: it has none.
        """
        accepting.count_again(self._rooms, self._rooms.tree.dataset(name), column, actor=self._actor())
