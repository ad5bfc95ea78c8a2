"""Counters of all processes: what was read where, and what did not go as it was to."""

from __future__ import annotations

from alembic import op

revision = "m0013"
down_revision = "m0012"
branch_labels = None
depends_on = None

# A day is one of UTC, by the database's clock. 0 stands for no dataset: a reference would lock the dataset's row for
# whoever counts, and counting is to stand in nobody's way.
_COUNTERS = """
CREATE TABLE lakeward.counters (
    day date NOT NULL,
    dataset_id bigint NOT NULL,
    name text NOT NULL,
    value bigint NOT NULL,
    PRIMARY KEY (day, dataset_id, name)
)
"""


def upgrade() -> None:
    """Make the table."""
    op.execute(_COUNTERS)


def downgrade() -> None:
    """Drop it, and what was counted."""
    op.execute("DROP TABLE lakeward.counters")
