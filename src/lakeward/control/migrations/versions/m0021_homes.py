"""Where the Iceberg table of a dataset was declared to belong, if not under the dataset's slugs."""

from __future__ import annotations

from alembic import op

revision = "m0021"
down_revision = "m0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.execute(
        "ALTER TABLE lakeward.datasets ADD COLUMN home_namespace text[], ADD COLUMN home_table text, "
        "ADD CONSTRAINT home_is_whole CHECK ((home_namespace IS NULL) = (home_table IS NULL) "
        "AND coalesce(cardinality(home_namespace), 1) > 0)"
    )


def downgrade() -> None:
    """Drop them. The tables stay where they are, which is recorded elsewhere."""
    op.execute("ALTER TABLE lakeward.datasets DROP COLUMN home_namespace, DROP COLUMN home_table")
