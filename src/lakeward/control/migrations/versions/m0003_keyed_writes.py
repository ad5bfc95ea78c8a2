"""Keyed writes: the key of each row of the Postgres arm as a number, and compaction as a kind of transaction."""

from __future__ import annotations

from alembic import op

revision = "m0003"
down_revision = "m0002"
branch_labels = None
depends_on = None

_NO_KINDS = "ALTER TABLE lakeward.dataset_transactions DROP CONSTRAINT dataset_transactions_kind_check"
_KINDS = """
ALTER TABLE lakeward.dataset_transactions
    ADD CONSTRAINT dataset_transactions_kind_check CHECK (kind IN ('write', 'copy', 'adopt', 'compact'))
"""
_OLD_KINDS = """
ALTER TABLE lakeward.dataset_transactions
    ADD CONSTRAINT dataset_transactions_kind_check CHECK (kind IN ('write', 'copy', 'adopt'))
"""
_NO_SUM = "ALTER TABLE lakeward.dataset_transactions DROP CONSTRAINT committed_is_complete"
# The input of these two verbs asks for deletions, so that its rows are among the deleted ones.
_SUM = """
ALTER TABLE lakeward.dataset_transactions ADD CONSTRAINT committed_is_complete CHECK (
    status <> 'committed' OR (committed_at IS NOT NULL AND row_count IS NOT NULL AND rows_deleted IS NOT NULL
        AND coalesce(rows_in = rows_added + rows_updated + rows_unchanged + rows_skipped
            + CASE WHEN verb IN ('changes', 'delete') THEN rows_deleted ELSE 0 END, false))
)
"""
# Not for what is in the ledger already: it has been committed, and stays.
_OLD_SUM = """
ALTER TABLE lakeward.dataset_transactions ADD CONSTRAINT committed_is_complete CHECK (
    status <> 'committed' OR (committed_at IS NOT NULL AND row_count IS NOT NULL AND rows_deleted IS NOT NULL
        AND coalesce(rows_in = rows_added + rows_updated + rows_unchanged + rows_skipped, false))
) NOT VALID
"""
# Nothing has filled the old column, and so nothing is lost with it.
_KEY = """
ALTER TABLE lakeward.dataset_rows DROP COLUMN key;
ALTER TABLE lakeward.dataset_rows ADD COLUMN key bigint;
"""
# Finds rows by the version that wrote them, and by the one that replaced them. Every row is in one of the two, and a
# reader of the head does not pass by its history.
_INDEXES = """
DROP INDEX lakeward.dataset_rows_version;
DROP INDEX lakeward.dataset_rows_until;
CREATE INDEX dataset_rows_version ON lakeward.dataset_rows (dataset_id, version) WHERE until IS NULL;
CREATE INDEX dataset_rows_until ON lakeward.dataset_rows (dataset_id, until, version) WHERE until IS NOT NULL;
"""
_OLD_INDEXES = """
DROP INDEX lakeward.dataset_rows_version;
DROP INDEX lakeward.dataset_rows_until;
CREATE INDEX dataset_rows_version ON lakeward.dataset_rows (dataset_id, version);
CREATE INDEX dataset_rows_until ON lakeward.dataset_rows (dataset_id, until) WHERE until IS NOT NULL;
"""
# Finds the rows of a dataset's head by their key. Replaced rows are not in it, so that it does not grow with history;
# those of a version before the last replace are passed by unread. Datasets without a key pay nothing for it.
# Its condition is put so that who asks in these words can be given no other index: before the table is analysed, that
# of the versions looks as good, and would be read whole for each key.
_KEY_INDEX = """
CREATE INDEX dataset_rows_key ON lakeward.dataset_rows (dataset_id, key, version)
    WHERE coalesce(until, 0) = 0 AND key IS NOT NULL
"""
# Up to which version rows of the Postgres arm may lack their key's number; the first keyed write fills it in.
_UNNUMBERED = """
ALTER TABLE lakeward.datasets ADD COLUMN unnumbered_to bigint NOT NULL DEFAULT 0;
UPDATE lakeward.datasets d SET unnumbered_to = coalesce(
    (SELECT max(t.version) FROM lakeward.dataset_transactions t WHERE t.dataset_id = d.id), 0)
WHERE d.primary_key <> '{}';
"""
# How the dataset's Iceberg table is partitioned when it is made, as texts like `bucket(16, id)`.
_PARTITION = "ALTER TABLE lakeward.datasets ADD COLUMN partition_by text[] NOT NULL DEFAULT '{}'"


def upgrade() -> None:
    """Make the key a number that has an index; let compactions, and deletions by key, into the ledger."""
    op.execute(_NO_KINDS)
    op.execute(_KINDS)
    op.execute(_NO_SUM)
    op.execute(_SUM)
    op.execute(_KEY)
    op.execute(_INDEXES)
    op.execute(_KEY_INDEX)
    op.execute(_UNNUMBERED)
    op.execute(_PARTITION)


def downgrade() -> None:
    """Take that back. The ledger's compactions become adopted ones, which an older Lakeward knows."""
    op.execute("UPDATE lakeward.dataset_transactions SET kind = 'adopt' WHERE kind = 'compact'")
    op.execute(_NO_KINDS)
    op.execute(_OLD_KINDS)
    op.execute(_NO_SUM)
    op.execute(_OLD_SUM)
    op.execute("ALTER TABLE lakeward.datasets DROP COLUMN unnumbered_to")
    op.execute(_OLD_INDEXES)
    op.execute("DROP INDEX lakeward.dataset_rows_key")
    op.execute("ALTER TABLE lakeward.dataset_rows DROP COLUMN key")
    op.execute("ALTER TABLE lakeward.dataset_rows ADD COLUMN key bytea")
    op.execute("ALTER TABLE lakeward.datasets DROP COLUMN partition_by")
