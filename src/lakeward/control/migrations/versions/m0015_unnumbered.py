"""Datasets whose rows were in an Iceberg table before: those have no identity columns until the first write."""

from __future__ import annotations

from alembic import op

revision = "m0015"
down_revision = "m0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the flag. What there is now was numbered when it was written."""
    op.execute("ALTER TABLE lakeward.datasets ADD COLUMN unnumbered boolean NOT NULL DEFAULT false")


def downgrade() -> None:
    """Drop it."""
    op.execute("ALTER TABLE lakeward.datasets DROP COLUMN unnumbered")
