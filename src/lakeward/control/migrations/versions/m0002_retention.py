"""Retention: which versions may stop being readable, and those that somebody asked to keep."""

from __future__ import annotations

from alembic import op

revision = "m0002"
down_revision = "m0001"
branch_labels = None
depends_on = None

# Set when the retention policy ends a version: it is not readable from then on, and its rows and files go later.
_EXPIRED = "ALTER TABLE lakeward.arm_versions ADD COLUMN expired_at timestamptz"
# Versions that somebody asked to keep, whatever the policy says.
_KEPT = """
CREATE TABLE lakeward.kept_versions (
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    version bigint NOT NULL,
    kept_by text NOT NULL,
    kept_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dataset_id, version)
)
"""


def upgrade() -> None:
    """Add the mark of expired versions, and the list of those that are kept."""
    op.execute(_EXPIRED)
    op.execute(_KEPT)


def downgrade() -> None:
    """Take both away; versions that were expired have no rows any more, so their entries go, too."""
    op.execute("DELETE FROM lakeward.arm_versions WHERE expired_at IS NOT NULL")
    op.execute("ALTER TABLE lakeward.arm_versions DROP COLUMN expired_at")
    op.execute("DROP TABLE lakeward.kept_versions")
