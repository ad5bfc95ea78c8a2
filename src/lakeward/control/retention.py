"""Retention: how many versions of a dataset stay readable, which never stop being it, and what each arm still holds.

Postgres decides, as everywhere: a version ends when its entries in `arm_versions` are marked here. Only then do
snapshots go, then rows and files, and last the entries themselves; so a crash between leaves garbage, never a hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lakeward.access.principal import Place
from lakeward.control.audit import audit, by
from lakeward.control.db import Database, Queries
from lakeward.errors import UnknownVersion

QUERIES = Queries.beside(__file__)

DEFAULT_VERSIONS = 100
"""So many of the newest committed versions of each dataset are readable."""


@dataclass(frozen=True)
class HeldVersion:
    """A version of which an arm still has rows or files.

    `expired_seconds`: since it ended; None: it is readable. `ended`: it ended just now.
    """

    arm: str
    version: int
    base_version: int
    snapshot_id: int | None
    ended: bool
    expired_seconds: float | None

    def needed(self, grace_seconds: float) -> bool:
        """Say whether it is readable, or was within the grace that readers have who began before it ended."""
        return self.expired_seconds is None or self.expired_seconds < grace_seconds


class Retention:
    """The policy of a workspace.

    Args:
        database: where the ledger is.
        versions: how many of a dataset's newest committed versions are readable, at least.
    """

    def __init__(self, database: Database, versions: int = DEFAULT_VERSIONS) -> None:
        self._database = database
        self.versions = versions

    def expire(self, dataset_id: int, *, dry_run: bool = False) -> list[HeldVersion]:
        """End the versions beyond the policy, and return what every arm holds. Repeating it does nothing more.

        Args:
            dataset_id: of this dataset.
            dry_run: return the same without ending anything.
        """
        parameters = {"dataset_id": dataset_id, "keep": self.versions}
        if dry_run:
            rows = self._database.fetch(QUERIES["would_expire"], parameters)
        else:
            with self._database.transaction() as connection:
                connection.execute(QUERIES["lock"], {"dataset_id": dataset_id})
                rows = list(connection.execute(QUERIES["expire"], parameters).mappings())
        return [HeldVersion(**row) for row in rows]

    def forget(self, dataset_id: int, arm: str, versions: Sequence[int]) -> None:
        """Remove the entries of expired versions of which the arm has nothing any more."""
        parameters = {"dataset_id": dataset_id, "arm": arm, "versions": list(versions)}
        self._database.fetch(QUERIES["forget"], parameters)

    def only_on(self, dataset_id: int, arm: str) -> dict[int, str | None]:
        """Return the readable versions that one arm alone holds, and who keeps each, if anybody does."""
        rows = self._database.fetch(QUERIES["only_on"], {"dataset_id": dataset_id, "arm": arm})
        return {row["version"]: row["kept_by"] for row in rows}

    def end_arm(self, dataset_id: int, arm: str) -> list[HeldVersion]:
        """End every version of an arm, and return what it holds; some stay readable if it still has a part to play."""
        key = {"dataset_id": dataset_id, "arm": arm}
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"], {"dataset_id": dataset_id})
            connection.execute(QUERIES["end_arm"], key)
            return [HeldVersion(**row) for row in connection.execute(QUERIES["held_by"], key).mappings()]

    def held(self, dataset_id: int, arm: str) -> list[HeldVersion]:
        """Return the versions of which an arm still has rows or files. Changes nothing; `ended` says nothing here."""
        rows = self._database.fetch(QUERIES["held_by"], {"dataset_id": dataset_id, "arm": arm})
        return [HeldVersion(**row) for row in rows]

    def open_seconds(self, dataset_id: int) -> float | None:
        """Return how long the dataset's open transaction has been open; None: there is none."""
        seconds: float | None = self._database.fetch(QUERIES["open_seconds"], {"dataset_id": dataset_id})[0]["seconds"]
        return seconds

    def was_committed(self, dataset_id: int, version: int) -> bool:
        """Say whether the version was ever committed, readable or not."""
        return bool(self._database.fetch(QUERIES["committed"], {"dataset_id": dataset_id, "version": version}))

    def keep(self, dataset_id: int, dataset: str, version: int, kept_by: str, place: Place = ()) -> None:
        """Keep a version readable until it is let go, whatever the policy says.

        Args:
            dataset_id: of which dataset.
            dataset: its name.
            version: which one.
            kept_by: who asks, for people.
            place: of the dataset.

        Raises:
            UnknownVersion: it is not readable (any more).
        """
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"], {"dataset_id": dataset_id})
            key = {"dataset_id": dataset_id, "version": version}
            if connection.execute(QUERIES["keep"], {**key, "kept_by": by(kept_by)}).first() is None:
                raise UnknownVersion(
                    f"dataset {dataset} has no readable version {version} to keep",
                    next_step=f"`lakeward dataset history {dataset}` lists its versions",
                    dataset=dataset,
                    version=version,
                )
            audit(connection, kept_by, "dataset.keep", dataset, None, {"version": version}, place)

    def let_go(self, dataset_id: int, dataset: str, version: int, actor: str, place: Place = ()) -> None:
        """Leave a version to the policy again."""
        with self._database.transaction() as connection:
            key = {"dataset_id": dataset_id, "version": version}
            if connection.execute(QUERIES["let_go"], key).rowcount:
                audit(connection, actor, "dataset.release", dataset, {"version": version}, None, place)

    def kept(self, dataset_id: int) -> list[int]:
        """Return the versions that somebody asked to keep."""
        return [row["version"] for row in self._database.fetch(QUERIES["kept"], {"dataset_id": dataset_id})]

    @contextmanager
    def unheld(self, dataset_id: int, arm: str) -> Iterator[bool]:
        """Say whether the arm holds nothing of the dataset and nobody writes it; for the block it stays like that.

        An intent on the dataset waits until the block ends.
        """
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"], {"dataset_id": dataset_id})
            key = {"dataset_id": dataset_id, "arm": arm}
            yield bool(connection.execute(QUERIES["unheld"], key).scalar_one())
