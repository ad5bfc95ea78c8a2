"""The ledger: the one table that says what is committed. Every statement is short, and every clock is the database's.

    open ──decide──▶ committed ──publish──▶ published          decide is the only commit point
      └──lease runs out, or the build fails──▶ aborted

An aborted transaction stays `open` until what it prepared is gone, so that its leftovers can never be taken for rows of
a later version: `take_over` (or the owner itself) first makes the old owner unable to write, then the arm discards,
then `abort` ends it. Each of the three can be repeated.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
import sqlalchemy

from lakeward.control.audit import by
from lakeward.control.db import Database, Queries
from lakeward.control.deciding import check, commit, lease_lost, record
from lakeward.control.idempotency import remember
from lakeward.control.identifiers import TableIdentifier, resolve
from lakeward.control.leases import Heartbeat, Owner
from lakeward.control.objects import gone, object_of
from lakeward.control.records import (
    ArmVersion,
    Claim,
    Decision,
    Idle,
    Intent,
    Mirror,
    OpenTransaction,
    Unfinished,
)
from lakeward.control.routes import Route
from lakeward.control.texts import storable
from lakeward.control.transaction_kinds import VERSIONLESS_KINDS
from lakeward.errors import ConflictError, Diverged, UnknownObject

QUERIES = Queries.beside(__file__)

TAKE_OVER_MILLISECONDS = 2000
"""How long taking over waits for what the old owner still has under way in Postgres."""

log = logging.getLogger("lakeward.ledger")


class Ledger:
    """Transactions of every dataset in one workspace.

    Args:
        database: where the ledger is.
        lease_seconds: how long an owner that shows no sign of life keeps its transaction.
        idempotency_days: for how many days a request's key is remembered.
    """

    def __init__(self, database: Database, *, lease_seconds: float = 60.0, idempotency_days: float = 7.0) -> None:
        self.database = self._database = database
        self._lease_seconds = lease_seconds
        self._idempotency_days = idempotency_days
        self._owner = Owner.current()

    # Intent ----------------------------------------------------------------------------------------------------------

    def try_open(self, intent: Intent, ticket: int | None = None) -> OpenTransaction | None:
        """Open a transaction, or return None if another one is open on the dataset or others wait in front.

        Args:
            intent: what to open.
            ticket: the place in the dataset's line of waiters (see `Slots`); None: behind everybody.

        Raises:
            Diverged: another engine moved the table; nothing is written until that is resolved.
            DroppedObject: the dataset is dropped.
        """
        key = {"dataset_id": intent.dataset_id}
        windows = [
            {"source": source, "low": window.low, "high": window.high}
            for source, window in sorted(intent.windows.items())
        ]
        with self._database.pipeline() as send:
            locked = send(QUERIES, "lock_dataset", key)
            opening = send(
                QUERIES,
                "open",
                {
                    **key,
                    "kind": intent.kind,
                    "verb": intent.verb,
                    "arm": intent.arm,
                    "build_id": intent.build_id,
                    "pipeline": intent.pipeline,
                    "writer": intent.writer,
                    "windows": json.dumps(windows),
                    "fingerprint": intent.fingerprint,
                    "actor": by(),
                    "owner": json.dumps(self._owner.to_json()),
                    "lease_seconds": self._lease_seconds,
                    "ticket": ticket,
                    "past_mirror": intent.past_mirror,
                    "serves": intent.serves,
                },
            )
            newest = send(QUERIES, "newest_on_arm", {**key, "arm": intent.arm})
            mirrors = send(QUERIES, "newest_on_mirror", key) if intent.kind == "write" else None
        head, opened, parent = locked.fetchone(), opening.fetchone(), newest.fetchone()
        mirror = mirrors.fetchone() if mirrors is not None else None
        assert head is not None, "datasets are not deleted"
        if head["drop_id"] is not None:
            raise self._dropped(intent.dataset_id)
        if head["status"] == "diverged" and intent.kind != "adopt":
            raise Diverged(
                f"dataset {intent.dataset} has diverged: another engine moved its Iceberg table's main branch",
                safe=f"reads stay at the last committed version, {head['head_version']}",
                next_step=ways_out(intent.dataset),
                dataset=intent.dataset,
            )
        if opened is None:
            return None
        return OpenTransaction(
            id=opened["id"],
            dataset_id=intent.dataset_id,
            dataset=intent.dataset,
            version=head["head_version"] if intent.kind in VERSIONLESS_KINDS else opened["version"],
            parent_version=head["head_version"],
            fence=opened["fence"],
            arm=intent.arm or head["primary_arm"],
            route=Route(head["mode"], head["primary_arm"], head["mirror_arm"], head["epoch"]),
            build_id=intent.build_id,
            opened_at=opened["opened_at"],
            next_row_id=head["next_row_id"],
            next_row_index=head["next_row_index"],
            parent_row_count=head["row_count"],
            parent_digest=None if head["digest_high"] is None else (int(head["digest_high"]), int(head["digest_low"])),
            kind=intent.kind,
            verb=intent.verb,
            windows=dict(intent.windows),
            identifier=resolve(head["iceberg_namespace"], head["iceberg_table"], head["slug"]),
            writer=intent.writer,
            arm_parent=ArmVersion(**parent) if parent is not None else None,
            mirror=_mirror(mirror),
            expectations=tuple(head["expectations"] or ()),
        )

    def _dropped(self, dataset_id: int) -> UnknownObject:
        found = object_of(self._database.fetch(QUERIES["dropped"], {"dataset_id": dataset_id})[0])
        return gone(found.level, found.path, found)

    # While it is open ------------------------------------------------------------------------------------------------

    def heartbeat(self, transactions: Sequence[Claim]) -> Heartbeat:
        """Return a context that keeps leases alive; its `lost` tells when one is gone.

        Args:
            transactions: whose; the list may grow while the context is open.
        """

        def renew() -> bool:
            held = list(transactions)
            renewed = self._database.fetch(
                QUERIES["renew"],
                {
                    "ids": [transaction.id for transaction in held],
                    "fences": [transaction.fence for transaction in held],
                    "lease_seconds": self._lease_seconds,
                },
            )
            return len(renewed) == len(held)

        return Heartbeat(renew, self._lease_seconds / 3)

    @staticmethod
    def hold(connection: psycopg.Connection[object], transaction: OpenTransaction) -> None:
        """In a writer's own Postgres transaction: keep the ledger row from being taken over until it ends.

        Raises:
            LeaseLost: it has been taken over, or aborted.
        """
        if not Ledger.holds(connection, transaction):
            raise lease_lost(transaction)

    @staticmethod
    def holds(connection: psycopg.Connection[object], claim: Claim) -> bool:
        """Do what `hold` does, and say whether the transaction is still in these hands."""
        key = {"id": claim.id, "fence": claim.fence}
        return connection.execute(QUERIES.for_driver("hold"), key).fetchone() is not None

    # Decide ----------------------------------------------------------------------------------------------------------

    def decide(self, decisions: Sequence[Decision], idle: Sequence[Idle] = ()) -> None:
        """Commit all transactions of a build, or none: the only commit point there is.

        Args:
            decisions: what each of them has prepared.
            idle: those that had nothing to write, but a key. They stay open.

        Raises:
            LeaseLost: the lease or fence of one of them is gone.
            RouteChanged: the route of one of them has moved on.
        """
        ordered = sorted(decisions, key=lambda each: each.transaction.dataset_id)
        transactions = [*(each.transaction for each in ordered), *(each.transaction for each in idle)]
        with self._database.pipeline() as send:
            send(QUERIES, "lock_datasets", {"ids": [each.dataset_id for each in transactions]})
            asked = [(decision.transaction, *commit(send, decision)) for decision in ordered]
            held = [
                (each.transaction, send(QUERIES, "hold", {"id": each.transaction.id, "fence": each.transaction.fence}))
                for each in idle
            ]
            send.wait()
            for transaction, route, committed, advanced in asked:
                check(transaction, route, committed, advanced)
            for transaction, ours in held:
                if ours.fetchone() is None:
                    raise lease_lost(transaction)
            for decision in ordered:
                record(send, decision)
                if decision.remembered is not None:
                    remember(send, decision.transaction, decision.remembered, self._idempotency_days)
            for each in idle:
                remember(send, each.transaction, each.remembered, self._idempotency_days)
            for id_, fence in sorted((each.transaction.id, each.transaction.fence) for each in ordered):
                send(QUERIES, "release", {"id": id_, "fence": fence})

    def status(self, transaction: OpenTransaction) -> str:
        """Return `open`, `committed` or `aborted`: what became of it, after an answer that was lost.

        "open" is final, too, as far as the caller's own decide is concerned: one still under way is waited for.
        """
        return str(self._database.fetch(QUERIES["status_of"], {"id": transaction.id})[0]["status"])

    def still_open(self, transaction: OpenTransaction) -> bool:
        """Say whether it is open and ours; once this is False, what was prepared may be committed and must stay.

        If a decide of ours was interrupted, this waits until it is through.
        """
        return bool(self._database.fetch(QUERIES["still_open"], {"id": transaction.id, "fence": transaction.fence}))

    # After it --------------------------------------------------------------------------------------------------------

    def mark_published(self, transaction_id: int) -> None:
        """Record that the catalog shows a committed version; repeating it changes nothing."""
        self._database.fetch(QUERIES["mark_published"], {"id": transaction_id})

    def log_sync(
        self, dataset_id: int, version: int, event: str, identifier: TableIdentifier, snapshot_id: int | None
    ) -> None:
        """Record what happened to the dataset's physical Iceberg table."""
        self._database.fetch(
            QUERIES["log_sync"],
            {
                "dataset_id": dataset_id,
                "version": version,
                "event": event,
                "namespace": list(identifier.namespace),
                "table_name": identifier.name,
                "snapshot_id": snapshot_id,
            },
        )

    def abort(self, transaction_id: int, fence: int, error: str | None) -> bool:
        """End an open transaction whose leftovers are gone; False if it is not ours to end, or has ended."""
        with self._database.transaction() as connection:
            why = None if error is None else storable(error)
            key = {"id": transaction_id, "fence": fence}
            done = connection.execute(QUERIES["abort"], {**key, "error": why}).one_or_none()
            if done is not None:
                connection.execute(QUERIES["release"], {"id": transaction_id, "fence": fence})
        return done is not None

    def let_go(self, transaction_id: int, fence: int) -> None:
        """End our lease on an open transaction that we can't tidy up, for recovery to take it over at once."""
        self._database.fetch(QUERIES["let_go"], {"id": transaction_id, "fence": fence})

    # Recovery --------------------------------------------------------------------------------------------------------

    def unfinished(self, dataset_id: int | None = None) -> list[Unfinished]:
        """Return what recovery has to do: abandoned open transactions (now held by us), unpublished committed ones.

        Of several recoverers at once exactly one gets each open transaction: taking over raises its fence.
        """
        found: list[Unfinished] = []
        for row in self._database.fetch(QUERIES["unfinished"], {"dataset_id": dataset_id}):
            fence, version = row["fence"], row["version"]
            versionless = row["kind"] in VERSIONLESS_KINDS
            if row["status"] == "open":
                taken = self._take_over(row)
                if taken is None:
                    continue
                # As they are now: the owner may have moved it up by a version since we looked.
                fence, version = taken
            found.append(
                Unfinished(
                    row["id"],
                    row["dataset_id"],
                    row["parent_version"] if versionless else version,
                    row["parent_version"],
                    tuple(filter(None, (row["arm"], row["mirror_arm"]))),
                    row["status"],
                    fence,
                    row["kind"],
                )
            )
        return found

    def _take_over(self, row: sqlalchemy.RowMapping) -> tuple[int, int] | None:
        """Return the new fence and the version, or None if it stays its owner's."""
        dead = row["owner"] is not None and Owner.from_json(row["owner"]).is_dead()
        if not dead and not row["expired"]:
            return None
        key = {"id": row["id"], "fence": row["lease_fence"]}
        claim = {"dead": dead, "owner": json.dumps(self._owner.to_json()), "lease_seconds": self._lease_seconds}
        for _ in range(2):
            try:
                with self._database.transaction() as connection:
                    connection.execute(QUERIES["lock_wait"], {"milliseconds": TAKE_OVER_MILLISECONDS})
                    if connection.execute(QUERIES["lock_open"], key).one_or_none() is None:
                        return None
                    taken = connection.execute(QUERIES["take_over"], {**key, **claim}).one_or_none()
                    return None if taken is None else (taken.fence, taken.version)
            except ConflictError as error:
                # Its owner has a chunk under way, or stopped in the middle of one.
                log.info("transaction %d can't be taken over yet: %s", row["id"], error)
                self._database.fetch(QUERIES["end_writers"], {"id": row["id"]})
        return None

    # Reading ---------------------------------------------------------------------------------------------------------

    def arm_version(self, dataset_id: int, arm: str, version: int | None = None) -> ArmVersion | None:
        """Return where `arm` holds `version` (None: the head), or None if it does not hold it.

        This is the one answer to "has this dataset a committed version on that arm": nothing counts rows to find out.
        """
        rows = self._database.fetch(QUERIES["arm_version"], {"dataset_id": dataset_id, "arm": arm, "version": version})
        return ArmVersion(**rows[0]) if rows else None

    def arm_versions(self, asked: Sequence[tuple[int, str, int | None]]) -> list[ArmVersion | None]:
        """Return where each of several datasets is held, asked by (dataset id, arm, version); see `arm_version`."""
        parameters = [{"dataset_id": id_, "arm": arm, "version": version} for id_, arm, version in asked]
        found = self._database.fetch_each(QUERIES, "arm_version", parameters)
        return [ArmVersion(**rows[0]) if rows else None for rows in found]

    def newest_arm_version(self, dataset_id: int, arm: str) -> ArmVersion | None:
        """Return the newest version that `arm` holds, or None if it never held one."""
        rows = self._database.fetch(QUERIES["newest_arm_version"], {"dataset_id": dataset_id, "arm": arm})
        return ArmVersion(**rows[0]) if rows else None

    def freshness(self, dataset_id: int) -> dict[str, int]:
        """Return the newest version that each arm holds, by arm: see `lakeward.storage.replication.Replication`."""
        rows = self._database.fetch(QUERIES["freshness"], {"dataset_id": dataset_id})
        return {row["arm"]: row["version"] for row in rows}

    def lag(self, dataset_id: int, arm: str) -> Mapping[str, Any]:
        """Return how far an arm is behind the head: see `lakeward.storage.replication.Lag`."""
        return dict(self._database.fetch(QUERIES["lag"], {"dataset_id": dataset_id, "arm": arm})[0])

    def heads(self, dataset_ids: Sequence[int]) -> dict[int, int]:
        """Return one consistent set of head versions, by dataset id."""
        rows = self._database.fetch(QUERIES["heads"], {"ids": list(dataset_ids)})
        return {row["id"]: row["head_version"] for row in rows}


def ways_out(dataset: str) -> str:
    """Return what can be done about a dataset that diverged."""
    return (
        f"`lakeward ledger adopt {dataset}` takes the other engine's rows as a new version, "
        f"`lakeward ledger restore {dataset}` brings back ours; --dry-run shows what they would do"
    )


def _mirror(row: Mapping[str, Any] | None) -> Mirror | None:
    if row is None:
        return None
    held = {name: value for name, value in row.items() if name != "arm"}
    return Mirror(row["arm"], ArmVersion(**held) if row["version"] is not None else None)
