"""What datasets themselves are expected to be, whoever writes them."""

from __future__ import annotations

from alembic import op

revision = "m0019"
down_revision = "m0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the list, in the form of a pipeline's; null: nothing is expected."""
    op.execute("ALTER TABLE lakeward.datasets ADD COLUMN expectations jsonb")


def downgrade() -> None:
    """Drop it."""
    op.execute("ALTER TABLE lakeward.datasets DROP COLUMN expectations")
