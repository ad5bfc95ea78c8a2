"""By which token a job was queued: it runs up to that one's ceiling and within its place, as long as it counts."""

from __future__ import annotations

from alembic import op

revision = "m0024"
down_revision = "m0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.execute("ALTER TABLE lakeward.job_states ADD COLUMN token text")


def downgrade() -> None:
    """Drop it."""
    op.execute("ALTER TABLE lakeward.job_states DROP COLUMN token")
