"""Models that builds make: a version knows its build, and is there only once that is committed."""

from __future__ import annotations

from alembic import op

revision = "m0006"
down_revision = "m0005"
branch_labels = None
depends_on = None

# Null: added by hand, and there at once. The ledger alone says what is committed, so nothing has to be changed here
# when a build is decided: the version is there by the same commit as the build's rows, or never.
_BUILD = "ALTER TABLE lakeward.models ADD COLUMN build_id uuid"


def upgrade() -> None:
    """Make the column."""
    op.execute(_BUILD)


def downgrade() -> None:
    """Drop it. Versions of builds that were not committed go, since an older Lakeward would take them for models."""
    op.execute(
        "DELETE FROM lakeward.models m WHERE m.build_id IS NOT NULL AND NOT EXISTS (SELECT 1 "
        "FROM lakeward.dataset_transactions t WHERE t.build_id = m.build_id AND t.status = 'committed')"
    )
    op.execute("ALTER TABLE lakeward.models DROP COLUMN build_id")
