"""Flips: which dataset is on its way to which arm, who works on it, and what was done."""

from __future__ import annotations

from alembic import op

revision = "m0008"
down_revision = "m0007"
branch_labels = None
depends_on = None

# How far a flip is stands in the route and in the ledger, which can't be wrong. This says that somebody wants it.
_FLIPS = """
CREATE TABLE lakeward.flips (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    to_arm text NOT NULL,
    started_by text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    outcome text CHECK (outcome IN ('completed', 'reverted', 'cancelled')),
    owner jsonb,
    fence bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    CONSTRAINT ended_has_outcome CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE UNIQUE INDEX one_flip_per_dataset ON lakeward.flips (dataset_id) WHERE ended_at IS NULL
"""
_EVENTS = """
CREATE TABLE lakeward.flip_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    flip_id bigint NOT NULL REFERENCES lakeward.flips,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    stage text NOT NULL,
    event text NOT NULL CHECK (event IN ('started', 'done', 'failed', 'undone')),
    actor text NOT NULL,
    seconds double precision,
    details jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX flip_events_flip ON lakeward.flip_events (flip_id, id)
"""


def upgrade() -> None:
    """Make the tables."""
    op.execute(_FLIPS)
    op.execute(_EVENTS)


def downgrade() -> None:
    """Drop them. Datasets stay on the arms that they are on."""
    op.execute("DROP TABLE lakeward.flip_events")
    op.execute("DROP TABLE lakeward.flips")
