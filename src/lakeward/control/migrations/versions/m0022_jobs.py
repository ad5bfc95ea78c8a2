"""Jobs: the tables of procrastinate, and what is kept of each job besides."""

from __future__ import annotations

from alembic import op

from lakeward.control import job_schema

revision = "m0022"
down_revision = "m0021"
branch_labels = None
depends_on = None

# What procrastinate keeps of a job is its place in the queue. `failures` are tries that ended by an error, `deaths`
# those whose worker died.
_STATES = """
CREATE TABLE lakeward.job_states (
    job_id bigint PRIMARY KEY REFERENCES lakeward.procrastinate_jobs (id) ON DELETE CASCADE,
    added_by text NOT NULL,
    principal text,
    owner jsonb,
    failures integer NOT NULL DEFAULT 0,
    deaths integer NOT NULL DEFAULT 0,
    progress jsonb,
    result jsonb,
    error jsonb,
    told_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""

_LOG = """
CREATE TABLE lakeward.job_log (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    job_id bigint NOT NULL REFERENCES lakeward.procrastinate_jobs (id) ON DELETE CASCADE,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    level text NOT NULL,
    line text NOT NULL
);
CREATE INDEX job_log_job ON lakeward.job_log (job_id, id)
"""

# By the name of what is scheduled: up to which of its times it was queued, and by which text that was reckoned.
_SCHEDULES = """
CREATE TABLE lakeward.job_schedules (
    name text PRIMARY KEY,
    schedule text NOT NULL,
    ticked_at timestamptz,
    seen text
)
"""


def upgrade() -> None:
    """Make the tables."""
    job_schema.install(op.get_bind())
    op.execute(_STATES)
    op.execute(_LOG)
    op.execute(_SCHEDULES)


def downgrade() -> None:
    """Drop them."""
    op.execute("DROP TABLE lakeward.job_schedules")
    op.execute("DROP TABLE lakeward.job_log")
    op.execute("DROP TABLE lakeward.job_states")
    job_schema.remove(op.get_bind())
