"""Copies that a backfill has brought and nobody has compared yet, and what an arm can be read at."""

from __future__ import annotations

from alembic import op

revision = "m0014"
down_revision = "m0013"
branch_labels = None
depends_on = None

# The transaction of the backfill that brought it, until it was compared with the arm that serves: until then it counts
# for nobody. What there is now was compared when it was brought.
_UNPROVED = "ALTER TABLE lakeward.arm_versions ADD COLUMN unproved_id bigint REFERENCES lakeward.dataset_transactions"
_UNPROVED_ONCE = (
    "CREATE UNIQUE INDEX one_unproved_per_arm ON lakeward.arm_versions (dataset_id, arm) "
    "WHERE unproved_id IS NOT NULL AND expired_at IS NULL"
)
# Whoever asks what an arm can be read at asks here.
_READABLE = """
CREATE VIEW lakeward.readable_versions AS
SELECT dataset_id, arm, version, base_version, snapshot_id, parent_snapshot_id
FROM lakeward.arm_versions WHERE expired_at IS NULL AND unproved_id IS NULL
"""


def upgrade() -> None:
    """Add the column and the view."""
    for statement in (_UNPROVED, _UNPROVED_ONCE, _READABLE):
        op.execute(statement)


def downgrade() -> None:
    """Drop them. A copy that was not compared is ended: its rows go with the next maintenance."""
    op.execute("DROP VIEW lakeward.readable_versions")
    op.execute(
        "UPDATE lakeward.arm_versions SET expired_at = clock_timestamp() "
        "WHERE unproved_id IS NOT NULL AND expired_at IS NULL"
    )
    op.execute("ALTER TABLE lakeward.arm_versions DROP COLUMN unproved_id")
