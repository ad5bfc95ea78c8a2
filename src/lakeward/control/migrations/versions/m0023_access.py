"""Who may do what: roles that are granted in the tree, tokens that people come with, and who wrote what."""

from __future__ import annotations

from alembic import op

revision = "m0023"
down_revision = "m0022"
branch_labels = None
depends_on = None

# At most one of the three places; none of them: the whole workspace. By their ids, so that a rename changes nothing.
_PLACE = """
    catalog_id bigint REFERENCES lakeward.catalogs,
    schema_id bigint REFERENCES lakeward.schemas,
    dataset_id bigint REFERENCES lakeward.datasets,
    CONSTRAINT {}_one_place CHECK (num_nonnulls(catalog_id, schema_id, dataset_id) <= 1)
"""

_ROLES = "('viewer', 'builder', 'operator', 'admin')"

_OF = """
CREATE FUNCTION lakeward.{}(catalog bigint, schema bigint, dataset bigint) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN num_nonnulls($1, $2, $3) = 0 THEN '{{}}'::text[]
                WHEN $1 IS NOT NULL
                THEN (SELECT t.{} FROM lakeward.tree t WHERE t.level = 'catalog' AND t.id = $1 AND t.purged_at IS NULL)
                WHEN $2 IS NOT NULL
                THEN (SELECT t.{} FROM lakeward.tree t WHERE t.level = 'schema' AND t.id = $2 AND t.purged_at IS NULL)
                ELSE (SELECT t.{} FROM lakeward.tree t WHERE t.level = 'dataset' AND t.id = $3 AND t.purged_at IS NULL)
           END
$$
"""
"""What a place is called: of none, nothing; of one that is purged, NULL."""

_STATEMENTS = (
    _OF.format("place_of", *["slugs"] * 3),
    _OF.format("path_of", *["path"] * 3),
    f"""
CREATE TABLE lakeward.grants (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_name text NOT NULL CHECK (user_name <> ''),
    role text NOT NULL CHECK (role IN {_ROLES}),
    granted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    granted_by text NOT NULL,
    {_PLACE.format("grants")},
    CONSTRAINT grants_once UNIQUE NULLS NOT DISTINCT (user_name, catalog_id, schema_id, dataset_id)
)
""",
    f"""
CREATE TABLE lakeward.tokens (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- What it is called by, and found by: the beginning of its text, which is no secret.
    name text NOT NULL UNIQUE,
    hash bytea NOT NULL,
    kind text NOT NULL CHECK (kind IN ('token', 'session')),
    user_name text NOT NULL CHECK (user_name <> ''),
    about text NOT NULL,
    ceiling text CHECK (ceiling IN {_ROLES}),
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    made_by text NOT NULL,
    expires_at timestamptz,
    used_at timestamptz,
    revoked_at timestamptz,
    -- The token that a session was begun with: it ends with it.
    parent_id bigint REFERENCES lakeward.tokens,
    {_PLACE.format("tokens")}
)
""",
    "CREATE INDEX tokens_user ON lakeward.tokens (user_name)",
    "CREATE INDEX audit_log_subject ON lakeward.audit_log (subject, id)",
    "ALTER TABLE lakeward.dataset_transactions ADD COLUMN actor text",
)


def upgrade() -> None:
    """Make the tables, and the column that says who opened a transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Drop them: nobody but the owner may do anything then."""
    op.execute("ALTER TABLE lakeward.dataset_transactions DROP COLUMN actor")
    op.execute("DROP INDEX lakeward.audit_log_subject")
    op.execute("DROP TABLE lakeward.tokens")
    op.execute("DROP TABLE lakeward.grants")
    op.execute("DROP FUNCTION lakeward.path_of")
    op.execute("DROP FUNCTION lakeward.place_of")
