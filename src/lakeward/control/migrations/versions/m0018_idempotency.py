"""Requests that were given a key, and what came of each: repeated ones get that answer."""

from __future__ import annotations

from alembic import op

revision = "m0018"
down_revision = "m0017"
branch_labels = None
depends_on = None

# Only a decide makes one, together with the rows that the request wrote. The digest is of the request's own rows: a key
# that is given with others stands for another request.
_KEYS = """
CREATE TABLE lakeward.idempotency_keys (
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets (id),
    key text NOT NULL,
    build_id uuid NOT NULL,
    verb text NOT NULL,
    writer text NOT NULL,
    rows_count bigint NOT NULL,
    rows_high numeric(20, 0) NOT NULL,
    rows_low numeric(20, 0) NOT NULL,
    result jsonb NOT NULL,
    decided_at timestamptz NOT NULL DEFAULT now(),
    keep_until timestamptz NOT NULL,
    PRIMARY KEY (dataset_id, key)
)
"""


def upgrade() -> None:
    """Make the table."""
    op.execute(_KEYS)


def downgrade() -> None:
    """Drop it."""
    op.execute("DROP TABLE lakeward.idempotency_keys")
