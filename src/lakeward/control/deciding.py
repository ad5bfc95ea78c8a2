"""Decide, the only commit point: what it sends to Postgres for each transaction of a build, and what may stop it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import psycopg

from lakeward.access.principal import Place
from lakeward.control import audit
from lakeward.control.db import Pipeline, Queries
from lakeward.control.identifiers import recorded
from lakeward.control.records import EDIT, Decision, Fed, Mirrored, OpenTransaction
from lakeward.control.texts import storable
from lakeward.control.transaction_kinds import VERSIONLESS_KINDS
from lakeward.errors import LeaseLost, RouteChanged

QUERIES = Queries.beside(__file__)

ROWLESS_KINDS = ("copy", "compact")
"""Transactions that change no row: whoever holds the version before them holds theirs, too."""

Answer = psycopg.Cursor[dict[str, Any]]


def commit(send: Pipeline, decision: Decision) -> tuple[Answer, Answer, Answer]:
    """Send what commits one transaction and advances its dataset; the answers say whether it may."""
    transaction, counts, digest = decision.transaction, decision.counts, decision.digest or (None, None)
    key = _key(transaction)
    route = send(QUERIES, "hold_route", key)
    totals = {"row_count": counts.row_count, "digest_high": digest[0], "digest_low": digest[1]}
    written = {
        "id": transaction.id,
        "fence": transaction.fence,
        "publishes": decision.publishes,
        "rows_in": counts.rows_in,
        "rows_added": counts.added,
        "rows_updated": counts.updated,
        "rows_unchanged": counts.unchanged,
        "rows_deleted": counts.deleted,
        "rows_skipped": counts.skipped,
        "mirror_error": None if decision.mirror_error is None else storable(decision.mirror_error),
    }
    decided = send(QUERIES, "decide", {**written, **totals})
    mirrored = decision.mirrored.identifier if decision.mirrored is not None else None
    place = recorded(decision.identifier or mirrored)
    if transaction.kind in VERSIONLESS_KINDS:
        head = send(QUERIES, "place_table", {**key, **place})
    else:
        counters = {"next_row_id": decision.next_row_id, "next_row_index": decision.next_row_index}
        head = send(QUERIES, "advance_head", {**key, **totals, **counters, **place})
    return route, decided, head


def check(transaction: OpenTransaction, route: Answer, committed: Answer, advanced: Answer) -> None:
    """Raise if the transaction must not be committed; nothing of it is, then."""
    held = route.fetchone()
    assert held is not None, "every dataset has a route"
    if held["epoch"] != transaction.route.epoch:
        raise RouteChanged(
            f"the route of dataset {transaction.dataset} changed while version {transaction.version} was written",
            safe=f"the dataset is unchanged at version {transaction.parent_version}",
            next_step="repeat the write: it will follow the new route",
            dataset=transaction.dataset,
        )
    if committed.fetchone() is None or advanced.rowcount != 1:
        raise lease_lost(transaction)


def record(send: Pipeline, decision: Decision) -> None:
    """Send what else a commit records: where the arm holds the version, and up to where sources were read."""
    transaction = decision.transaction
    key = _key(transaction)
    if transaction.kind not in VERSIONLESS_KINDS:
        snapshots = {"snapshot_id": decision.snapshot_id, "parent_snapshot_id": decision.parent_snapshot_id}
        send(QUERIES, "record_arm_version", {**key, **snapshots, "rebases": decision.rebases})
    if decision.mirrored is not None:
        _record_mirrored(send, key, decision.mirrored)
    if decision.mismatch is not None:
        details = json.dumps({"error": storable(decision.mismatch)}, ensure_ascii=False)
        send(QUERIES, "record_parity", {**key, "kind": "write", "equal": False, "rows": 0, "details": details})
    if decision.route is not None:
        to = decision.route
        route = {"mode": to.mode, "primary_arm": to.primary_arm, "mirror_arm": to.mirror_arm}
        send(QUERIES, "set_route", {**key, **route})
    if decision.carries or transaction.kind in ROWLESS_KINDS:
        send(QUERIES, "carry_arm_versions", key)
    if decision.resolution is not None:
        send(QUERIES, "resolve", key)
        send(QUERIES, "supersede", key)
        audit.send_line(send, decision.resolution.audit_entry(transaction.dataset, decision.snapshot_id))
    if decision.author is not None:
        audit.send_line(send, _edited(transaction, decision.author, decision.place))
    for source, window in sorted(transaction.windows.items()):
        send(QUERIES, "record_watermark", {**key, "source_id": source, "version": window.high})
    if decision.fed is not None:
        _record_fed(send, key, decision.fed)


def _record_fed(send: Pipeline, key: Mapping[str, object], fed: Fed) -> None:
    """Send what the rows were read from, and up to where."""
    position = None if fed.position is None else json.dumps(fed.position)
    send(QUERIES, "record_position", {**key, "source": fed.source, "relation": fed.relation, "position": position})
    if fed.whole:
        send(QUERIES, "forget_files", key)
    if fed.files:
        facts = {f"{name}s": [getattr(file, name) for file in fed.files] for name in ("path", "size", "state")}
        send(QUERIES, "record_files", {**key, **facts, "hashes": [file.hash for file in fed.files]})


def _edited(transaction: OpenTransaction, author: str, place: Place) -> dict[str, object]:
    """Return the line of the audit log that `History` finds the author of a version by."""
    before = {"version": transaction.parent_version}
    after = {"version": transaction.version, "transaction": transaction.id}
    return audit.entry(author, EDIT, transaction.dataset, before, after, place)


def _record_mirrored(send: Pipeline, key: Mapping[str, object], mirrored: Mirrored) -> None:
    """Send where the mirror holds the version, and that it was compared there, if it was."""
    send(QUERIES, "record_mirrored", {**key, **vars(mirrored.place), "arm": mirrored.arm})
    if mirrored.place.unproved is not None:
        return
    details = json.dumps({"arm": mirrored.arm})
    found = {"kind": mirrored.compared, "equal": True, "rows": mirrored.rows, "details": details}
    send(QUERIES, "record_parity", {**key, **found})


def _key(transaction: OpenTransaction) -> dict[str, object]:
    return {
        "dataset_id": transaction.dataset_id,
        "version": transaction.version,
        "parent_version": transaction.parent_version,
        "arm": transaction.arm,
    }


def lease_lost(transaction: OpenTransaction) -> LeaseLost:
    """Return the error of an owner that was taken over."""
    return LeaseLost(
        f"version {transaction.version} of dataset {transaction.dataset} was taken over: its lease ran out",
        safe="what it prepared was never visible; the ledger decides, and it did not commit this",
        next_step="repeat the write; raise ledger.lease_seconds if the process is often paused for long",
        dataset=transaction.dataset,
        version=transaction.version,
    )
