"""Models: the versions of each registered model, and their files by content."""

from __future__ import annotations

from alembic import op

revision = "m0005"
down_revision = "m0004"
branch_labels = None
depends_on = None

# In Postgres and not in a directory: every machine of a workspace has it, and a backup has both or neither. Not
# compressed: most models are dense numbers.
_FILES = """
CREATE TABLE lakeward.model_files (
    sha256 text PRIMARY KEY CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    content bytea NOT NULL
);
ALTER TABLE lakeward.model_files ALTER COLUMN content SET STORAGE EXTERNAL
"""
# A version never changes and is never removed: fingerprints of pipelines name it.
_MODELS = """
CREATE TABLE lakeward.models (
    name text NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    format text NOT NULL,
    sha256 text NOT NULL REFERENCES lakeward.model_files,
    size bigint NOT NULL,
    -- Which part of the file is meant: the name of a function.
    entry text NOT NULL,
    origin text NOT NULL,
    features jsonb NOT NULL,
    outputs jsonb NOT NULL,
    added_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    added_by text NOT NULL,
    PRIMARY KEY (name, version)
)
"""


def upgrade() -> None:
    """Make the tables."""
    op.execute(_FILES)
    op.execute(_MODELS)


def downgrade() -> None:
    """Drop them. The models are lost; pipelines that name them can't be built."""
    op.execute("DROP TABLE lakeward.models")
    op.execute("DROP TABLE lakeward.model_files")
