"""Moves: the table's own name, transactions that move a table, what each move does, and what a catalog can do."""

from __future__ import annotations

from alembic import op

revision = "m0011"
down_revision = "m0010"
branch_labels = None
depends_on = None

_NO_KINDS = "ALTER TABLE lakeward.dataset_transactions DROP CONSTRAINT dataset_transactions_kind_check"
_KINDS = """
ALTER TABLE lakeward.dataset_transactions ADD CONSTRAINT dataset_transactions_kind_check
    CHECK (kind IN ('write', 'copy', 'adopt', 'compact', 'backfill', 'mirror', 'route', 'move'))
"""
_OLD_KINDS = """
ALTER TABLE lakeward.dataset_transactions ADD CONSTRAINT dataset_transactions_kind_check
    CHECK (kind IN ('write', 'copy', 'adopt', 'compact', 'backfill', 'mirror', 'route'))
"""
# NULL: the table is called as the dataset's slug. Not so in the legacy namespace where two slugs are equal, nor where
# an existing table came under a dataset.
_TABLE_NAME = """
ALTER TABLE lakeward.datasets ADD COLUMN iceberg_table text CHECK (iceberg_table <> '');
ALTER TABLE lakeward.iceberg_sync_log ADD COLUMN table_name text
"""
# Written before anything happens in the catalog, so that whoever finds the transaction open knows where to look.
_MOVES = """
CREATE TABLE lakeward.table_moves (
    transaction_id bigint PRIMARY KEY REFERENCES lakeward.dataset_transactions,
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    from_namespace text[] NOT NULL,
    from_table text NOT NULL,
    to_namespace text[] NOT NULL,
    to_table text NOT NULL,
    -- How the catalog did it, and the table's metadata file then; known at the end.
    way text,
    metadata_location text,
    snapshot_id bigint,
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at timestamptz
);
CREATE INDEX table_moves_dataset ON lakeward.table_moves (dataset_id, transaction_id DESC)
"""
# By the catalog's name and address, without what is secret in it.
_ABILITIES = """
CREATE TABLE lakeward.catalog_abilities (
    catalog text PRIMARY KEY,
    abilities jsonb NOT NULL,
    probed_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""

# Before this, a table was always called as the dataset's slug, and a move could not be told from a write.
_NO_WAY_BACK = """
DO $$ BEGIN
    IF EXISTS (SELECT 1 FROM lakeward.datasets WHERE iceberg_table IS NOT NULL) THEN
        RAISE EXCEPTION 'Iceberg tables are called otherwise than their datasets: lakeward move apply --all';
    END IF;
    IF EXISTS (SELECT 1 FROM lakeward.dataset_transactions WHERE kind = 'move' AND status = 'open') THEN
        RAISE EXCEPTION 'a move is under way: lakeward ledger recover';
    END IF;
END $$
"""


def upgrade() -> None:
    """Let the new kind in, and make the columns and tables."""
    for statement in (_NO_KINDS, _KINDS, _TABLE_NAME, _MOVES, _ABILITIES):
        op.execute(statement)


def downgrade() -> None:
    """Take that back, unless a table's place would be lost. What the ledger has of moves made no version, and goes."""
    op.execute(_NO_WAY_BACK)
    op.execute("DROP TABLE lakeward.catalog_abilities")
    op.execute("DROP TABLE lakeward.table_moves")
    op.execute("DELETE FROM lakeward.dataset_transactions WHERE kind = 'move'")
    op.execute("ALTER TABLE lakeward.iceberg_sync_log DROP COLUMN table_name")
    op.execute("ALTER TABLE lakeward.datasets DROP COLUMN iceberg_table")
    op.execute(_NO_KINDS)
    op.execute(_OLD_KINDS)
