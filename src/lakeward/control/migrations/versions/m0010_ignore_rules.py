"""Rules that differences between the arms in a column are accepted for a time."""

from __future__ import annotations

from alembic import op

revision = "m0010"
down_revision = "m0009"
branch_labels = None
depends_on = None

_RULES = """
CREATE TABLE lakeward.ignore_rules (
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    field_id integer NOT NULL,
    reason text NOT NULL CHECK (reason <> ''),
    owner text NOT NULL CHECK (owner <> ''),
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    until timestamptz NOT NULL,
    PRIMARY KEY (dataset_id, field_id)
)
"""


def upgrade() -> None:
    """Make the table."""
    op.execute(_RULES)


def downgrade() -> None:
    """Drop it: every difference counts again."""
    op.execute("DROP TABLE lakeward.ignore_rules")
