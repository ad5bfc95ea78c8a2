"""Sources that datasets are synced from, and how far each dataset has read its table."""

from __future__ import annotations

from alembic import op

revision = "m0016"
down_revision = "m0015"
branch_labels = None
depends_on = None

# Options hold references to secrets, never secrets.
_SOURCES = """
CREATE TABLE lakeward.sources (
    name text PRIMARY KEY,
    type text NOT NULL,
    options jsonb NOT NULL,
    tables text[] NOT NULL,
    added_at timestamptz NOT NULL DEFAULT now(),
    added_by text NOT NULL
)
"""

# By name, so that a source which is removed and added again goes on where it was. The position is the connector's own;
# null: it can't tell one. Only the decide of a write sets it, together with the rows.
_POSITIONS = """
CREATE TABLE lakeward.sync_positions (
    dataset_id bigint PRIMARY KEY REFERENCES lakeward.datasets (id),
    source text NOT NULL,
    relation text NOT NULL,
    position jsonb,
    version bigint NOT NULL,
    synced_at timestamptz NOT NULL DEFAULT now()
)
"""


def upgrade() -> None:
    """Make the tables."""
    op.execute(_SOURCES)
    op.execute(_POSITIONS)


def downgrade() -> None:
    """Drop them."""
    op.execute("DROP TABLE lakeward.sync_positions")
    op.execute("DROP TABLE lakeward.sources")
