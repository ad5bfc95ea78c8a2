"""Sources whose logs of changes are read, and which dataset each of their tables feeds."""

from __future__ import annotations

from alembic import op

revision = "m0020"
down_revision = "m0019"
branch_labels = None
depends_on = None

# A source that is followed keeps something at the other side; it is not to be forgotten before that is given up.
_SOURCES = """
CREATE TABLE lakeward.followed_sources (
    source text PRIMARY KEY REFERENCES lakeward.sources (name),
    label text NOT NULL,
    mode text NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT now(),
    begun_by text NOT NULL
)
"""

_TABLES = """
CREATE TABLE lakeward.followed_tables (
    source text NOT NULL REFERENCES lakeward.followed_sources (source),
    relation text NOT NULL,
    dataset_id bigint NOT NULL UNIQUE,
    PRIMARY KEY (source, relation)
)
"""


def upgrade() -> None:
    """Make the tables."""
    op.execute(_SOURCES)
    op.execute(_TABLES)


def downgrade() -> None:
    """Drop them."""
    op.execute("DROP TABLE lakeward.followed_tables")
    op.execute("DROP TABLE lakeward.followed_sources")
