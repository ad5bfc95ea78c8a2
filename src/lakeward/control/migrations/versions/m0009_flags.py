"""Flags: how writers make datasets and which arm readers prefer; and comparisons that could not be made."""

from __future__ import annotations

from alembic import op

revision = "m0009"
down_revision = "m0008"
branch_labels = None
depends_on = None

# Names and values are the code's own, which clamps what an older or newer one has left here.
_FLAGS = """
CREATE TABLE lakeward.flags (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('writer', 'reader')),
    name text NOT NULL,
    dataset_id bigint REFERENCES lakeward.datasets,
    value text NOT NULL,
    set_by text NOT NULL,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- A dataset's mode is its route, which stands in one place only.
    CONSTRAINT writers_are_global CHECK (kind = 'reader' OR dataset_id IS NULL),
    CONSTRAINT one_value UNIQUE NULLS NOT DISTINCT (kind, name, dataset_id)
)
"""
# A reader that compares may find that the other arm can't be read: that says nothing about equality.
_UNKNOWN = """
ALTER TABLE lakeward.parity_checks ALTER COLUMN equal DROP NOT NULL;
ALTER TABLE lakeward.parity_checks
    ADD CONSTRAINT only_reads_fail CHECK (equal IS NOT NULL OR kind = 'read')
"""


def upgrade() -> None:
    """Make the table, and let a comparison have no finding."""
    op.execute(_FLAGS)
    op.execute(_UNKNOWN)


def downgrade() -> None:
    """Take that back: every flag has its default again."""
    op.execute("ALTER TABLE lakeward.parity_checks DROP CONSTRAINT only_reads_fail")
    op.execute("DELETE FROM lakeward.parity_checks WHERE equal IS NULL")
    op.execute("ALTER TABLE lakeward.parity_checks ALTER COLUMN equal SET NOT NULL")
    op.execute("DROP TABLE lakeward.flags")
