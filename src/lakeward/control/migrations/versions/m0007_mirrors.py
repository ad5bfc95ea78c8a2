"""Mirrors: transactions that bring a version to another arm or change the route, and what mirrored writes found."""

from __future__ import annotations

from alembic import op

revision = "m0007"
down_revision = "m0006"
branch_labels = None
depends_on = None

_NO_KINDS = "ALTER TABLE lakeward.dataset_transactions DROP CONSTRAINT dataset_transactions_kind_check"
_KINDS = """
ALTER TABLE lakeward.dataset_transactions ADD CONSTRAINT dataset_transactions_kind_check
    CHECK (kind IN ('write', 'copy', 'adopt', 'compact', 'backfill', 'mirror', 'route'))
"""
_OLD_KINDS = """
ALTER TABLE lakeward.dataset_transactions
    ADD CONSTRAINT dataset_transactions_kind_check CHECK (kind IN ('write', 'copy', 'adopt', 'compact'))
"""
# A backfill takes as long as the dataset is large, and writers go on meanwhile: it does not hold their slot.
_SLOTS = """
DROP INDEX lakeward.one_open_per_dataset;
CREATE UNIQUE INDEX one_open_per_dataset ON lakeward.dataset_transactions (dataset_id)
    WHERE status = 'open' AND kind <> 'backfill';
CREATE UNIQUE INDEX one_backfill_per_dataset ON lakeward.dataset_transactions (dataset_id)
    WHERE status = 'open' AND kind = 'backfill'
"""
_OLD_SLOTS = """
DROP INDEX lakeward.one_backfill_per_dataset;
DROP INDEX lakeward.one_open_per_dataset;
CREATE UNIQUE INDEX one_open_per_dataset ON lakeward.dataset_transactions (dataset_id) WHERE status = 'open'
"""
# The arm that a write is mirrored to while it is open, where it leaves something behind if it dies; and why the mirror
# is not at the version, where it is not.
_MIRROR = """
ALTER TABLE lakeward.dataset_transactions ADD COLUMN mirror_arm text;
ALTER TABLE lakeward.dataset_transactions ADD COLUMN mirror_error text
"""
# What comparisons of the two arms found, newest first for each dataset.
_PARITY = """
CREATE TABLE lakeward.parity_checks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    version bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('write', 'read', 'full')),
    equal boolean NOT NULL,
    -- How many rows were compared on each side.
    rows bigint NOT NULL,
    details jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX parity_checks_dataset ON lakeward.parity_checks (dataset_id, id DESC)
"""


def upgrade() -> None:
    """Let the new kinds in, a backfill beside a writer, and the columns and the table for what mirrors do."""
    for statement in (_NO_KINDS, _KINDS, _SLOTS, _MIRROR, _PARITY):
        op.execute(statement)


def downgrade() -> None:
    """Take that back. What the ledger has of the new kinds made no version, and goes."""
    op.execute("DROP TABLE lakeward.parity_checks")
    op.execute(
        "DELETE FROM lakeward.leases WHERE transaction_id IN (SELECT id FROM lakeward.dataset_transactions "
        "WHERE kind IN ('backfill', 'mirror', 'route'))"
    )
    op.execute("DELETE FROM lakeward.dataset_transactions WHERE kind IN ('backfill', 'mirror', 'route')")
    op.execute("ALTER TABLE lakeward.dataset_transactions DROP COLUMN mirror_arm")
    op.execute("ALTER TABLE lakeward.dataset_transactions DROP COLUMN mirror_error")
    op.execute(_NO_KINDS)
    op.execute(_OLD_KINDS)
    op.execute(_OLD_SLOTS)
