"""Which files of a source a dataset has the rows of, so that a folder that only grows is read file by file."""

from __future__ import annotations

from alembic import op

revision = "m0017"
down_revision = "m0016"
branch_labels = None
depends_on = None

# Only the decide of a write sets it, together with the rows, as it does `sync_positions`.
_FILES = """
CREATE TABLE lakeward.source_files (
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets (id),
    path text NOT NULL,
    size bigint NOT NULL,
    state text NOT NULL,
    hash text NOT NULL,
    version bigint NOT NULL,
    read_at timestamptz NOT NULL DEFAULT now()
)
"""

# Of a hash, since a path may be longer than an entry of an index can be.
_KEY = "CREATE UNIQUE INDEX source_files_key ON lakeward.source_files (dataset_id, md5(path))"


def upgrade() -> None:
    """Make the table."""
    op.execute(_FILES)
    op.execute(_KEY)


def downgrade() -> None:
    """Drop it."""
    op.execute("DROP TABLE lakeward.source_files")
