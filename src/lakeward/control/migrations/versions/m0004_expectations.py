"""Expectations: what an audit found in each version, of those that it refused, too."""

from __future__ import annotations

from alembic import op

revision = "m0004"
down_revision = "m0003"
branch_labels = None
depends_on = None

# A version that was refused keeps its row in the ledger, as an aborted one. Values are kept as texts, which are exact:
# many read a JSON number as a double.
_RESULTS = """
CREATE TABLE lakeward.expectation_results (
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    version bigint NOT NULL,
    position integer NOT NULL,
    kind text NOT NULL,
    -- What was expected, for people.
    text text NOT NULL,
    -- One form of all that it depends on: equal ones judge equal rows alike.
    definition text NOT NULL,
    on_fail text NOT NULL CHECK (on_fail IN ('fail', 'warn', 'quarantine')),
    outcome text NOT NULL CHECK (outcome IN ('passed', 'vacuous', 'no data', 'failed')),
    -- Whether the build went on in spite of it, or because of it.
    refused boolean NOT NULL,
    rows_checked bigint NOT NULL,
    rows_failed bigint NOT NULL,
    observed text,
    message text NOT NULL,
    samples jsonb NOT NULL DEFAULT '[]',
    judged_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dataset_id, version, position),
    FOREIGN KEY (dataset_id, version) REFERENCES lakeward.dataset_transactions (dataset_id, version)
)
"""


def upgrade() -> None:
    """Add the table."""
    op.execute(_RESULTS)


def downgrade() -> None:
    """Take it away."""
    op.execute("DROP TABLE lakeward.expectation_results")
