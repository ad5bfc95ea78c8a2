-- Names ---------------------------------------------------------------------------------------------------------------
-- Slugs and name keys are made here and not in a client, so that no client can skip them or make other ones.

-- The form that two names under one parent must not share: Unicode-normalised and lower-cased.
CREATE FUNCTION lakeward.name_key(name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN normalize(lower(normalize(name, NFC) COLLATE @unicode_collation@), NFC);

-- The identifier-safe form of a name, at most `width` bytes: accents stripped, everything else outside [a-z0-9] becomes
-- one underscore. A name that loses all its characters, or is too long, gets eight hex digits of its md5, so that two
-- names never become one and a name's slug does not depend on what else there is.
CREATE FUNCTION lakeward.slug(name text, width integer DEFAULT 48) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT CASE
        WHEN plain = '' THEN 'n_' || left(md5(name), 8)
        WHEN length(plain) > width THEN rtrim(left(plain, width - 9), '_') || '_' || left(md5(name), 8)
        ELSE plain
    END
    FROM (SELECT trim(BOTH '_' FROM regexp_replace(
        lower(regexp_replace(normalize(name, NFKD), U&'[\0300-\036F]', '', 'g') COLLATE @unicode_collation@),
        '[^a-z0-9]+', '_', 'g'
    )) AS plain) AS stripped
);

-- Whether a name can be kept as it is: not empty, at most 255 bytes, no space of any alphabet at its ends, no control
-- character. The characters are listed, because what a class like [[:space:]] holds differs from server to server.
CREATE FUNCTION lakeward.is_valid_name(name text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN octet_length(name) BETWEEN 1 AND 255
    AND name !~ '[\u0001-\u001f\u007f-\u009f]'
    AND name !~ '^[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
    AND name !~ '[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$';

-- BEFORE INSERT on the tables of the tree: fill `slug` and `name_key`; a slug that a sibling has gets the name's md5, as
-- much of it as it takes. BEFORE UPDATE: the slug stays for ever, the key follows the name. TG_ARGV[0] is the parent's
-- column.
CREATE FUNCTION lakeward.assign_slug() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    plain text := lakeward.slug(NEW.name);
    parent bigint := (to_jsonb(NEW) ->> TG_ARGV[0])::bigint;
    digits integer;
    taken boolean;
BEGIN
    IF NOT lakeward.is_valid_name(NEW.name) THEN
        RAISE EXCEPTION 'lakeward: name % is empty, longer than 255 bytes, padded, or has a control character', quote_literal(NEW.name)
            USING ERRCODE = 'check_violation', CONSTRAINT = 'valid_name';
    END IF;
    NEW.name_key := lakeward.name_key(NEW.name);
    IF TG_OP = 'UPDATE' THEN
        NEW.slug := OLD.slug;
        RETURN NEW;
    END IF;
    FOREACH digits IN ARRAY ARRAY[0, 8, 16, 32] LOOP
        NEW.slug := CASE digits WHEN 0 THEN plain
            ELSE rtrim(left(plain, 47 - digits), '_') || '_' || left(md5(NEW.name), digits) END;
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I.%I WHERE %I IS NOT DISTINCT FROM $1 AND slug = $2)',
                       TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0]) INTO taken USING parent, NEW.slug;
        EXIT WHEN NOT taken;
    END LOOP;
    RETURN NEW;
END
$$;

-- The tree ------------------------------------------------------------------------------------------------------------
CREATE TABLE lakeward.workspaces (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    root bigint NOT NULL DEFAULT 0,
    name text NOT NULL,
    name_key text NOT NULL,
    slug text NOT NULL CONSTRAINT valid_slug CHECK (slug ~ '^[a-z0-9][a-z0-9_]*$' AND octet_length(slug) <= 48),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT workspaces_name UNIQUE (root, name_key),
    CONSTRAINT workspaces_slug UNIQUE (root, slug)
);
CREATE TABLE lakeward.catalogs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id bigint NOT NULL REFERENCES lakeward.workspaces,
    name text NOT NULL,
    name_key text NOT NULL,
    slug text NOT NULL CONSTRAINT valid_slug CHECK (slug ~ '^[a-z0-9][a-z0-9_]*$' AND octet_length(slug) <= 48),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT catalogs_name UNIQUE (workspace_id, name_key),
    CONSTRAINT catalogs_slug UNIQUE (workspace_id, slug)
);
CREATE TABLE lakeward.schemas (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    catalog_id bigint NOT NULL REFERENCES lakeward.catalogs,
    name text NOT NULL,
    name_key text NOT NULL,
    slug text NOT NULL CONSTRAINT valid_slug CHECK (slug ~ '^[a-z0-9][a-z0-9_]*$' AND octet_length(slug) <= 48),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT schemas_name UNIQUE (catalog_id, name_key),
    CONSTRAINT schemas_slug UNIQUE (catalog_id, slug)
);
CREATE TABLE lakeward.datasets (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid uuid NOT NULL DEFAULT gen_random_uuid() CONSTRAINT datasets_uid UNIQUE,
    schema_id bigint NOT NULL REFERENCES lakeward.schemas,
    name text NOT NULL,
    name_key text NOT NULL,
    slug text NOT NULL CONSTRAINT valid_slug CHECK (slug ~ '^[a-z0-9][a-z0-9_]*$' AND octet_length(slug) <= 48),
    columns jsonb NOT NULL,
    primary_key text[] NOT NULL DEFAULT '{}',
    -- Where the Iceberg table physically is: a list of levels. NULL: not persisted; a table, if there is one, is in the
    -- legacy namespace `datasets`. Never derived when reading.
    iceberg_namespace text[],
    head_version bigint NOT NULL DEFAULT 0,
    last_version bigint NOT NULL DEFAULT 0,
    row_count bigint NOT NULL DEFAULT 0,
    digest_high numeric(20, 0),
    digest_low numeric(20, 0),
    next_row_id bigint NOT NULL DEFAULT 0,
    next_row_index bigint NOT NULL DEFAULT 0,
    status text NOT NULL DEFAULT 'ok' CHECK (status IN ('ok', 'diverged')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT datasets_name UNIQUE (schema_id, name_key),
    CONSTRAINT datasets_slug UNIQUE (schema_id, slug)
);
CREATE TRIGGER assign_slug BEFORE INSERT OR UPDATE OF name, slug, name_key ON lakeward.workspaces
    FOR EACH ROW EXECUTE FUNCTION lakeward.assign_slug('root');
CREATE TRIGGER assign_slug BEFORE INSERT OR UPDATE OF name, slug, name_key ON lakeward.catalogs
    FOR EACH ROW EXECUTE FUNCTION lakeward.assign_slug('workspace_id');
CREATE TRIGGER assign_slug BEFORE INSERT OR UPDATE OF name, slug, name_key ON lakeward.schemas
    FOR EACH ROW EXECUTE FUNCTION lakeward.assign_slug('catalog_id');
CREATE TRIGGER assign_slug BEFORE INSERT OR UPDATE OF name, slug, name_key ON lakeward.datasets
    FOR EACH ROW EXECUTE FUNCTION lakeward.assign_slug('schema_id');

-- A dataset's one route: the only truth about where its rows are. The epoch counts its changes.
CREATE TABLE lakeward.routes (
    dataset_id bigint PRIMARY KEY REFERENCES lakeward.datasets,
    mode text NOT NULL CHECK (mode IN ('pg', 'dual', 'iceberg_dual', 'iceberg_native')),
    primary_arm text NOT NULL,
    mirror_arm text,
    epoch bigint NOT NULL DEFAULT 1,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT mode_names_its_arms CHECK (
        (mode = 'pg' AND primary_arm = 'postgres' AND mirror_arm IS NULL)
        OR (mode = 'dual' AND primary_arm = 'postgres' AND mirror_arm = 'iceberg')
        OR (mode = 'iceberg_dual' AND primary_arm = 'iceberg' AND mirror_arm = 'postgres')
        OR (mode = 'iceberg_native' AND primary_arm = 'iceberg' AND mirror_arm IS NULL)
    )
);

-- The ledger ----------------------------------------------------------------------------------------------------------
CREATE SEQUENCE lakeward.fences;

-- One row per transaction of one dataset: one write, one copy between the arms, or one adopted commit of another engine.
CREATE TABLE lakeward.dataset_transactions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    version bigint NOT NULL,
    parent_version bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('write', 'copy', 'adopt')),
    verb text NOT NULL,
    arm text NOT NULL,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'committed', 'aborted')),
    build_id uuid NOT NULL,
    pipeline text,
    writer text NOT NULL,
    route_epoch bigint NOT NULL,
    fence bigint NOT NULL,
    windows jsonb NOT NULL DEFAULT '[]',
    -- What the pipeline meant when it wrote this: equal ones over equal sources make equal rows.
    fingerprint text,
    opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    committed_at timestamptz,
    published_at timestamptz,
    ended_at timestamptz,
    rows_in bigint,
    rows_added bigint,
    rows_updated bigint,
    rows_unchanged bigint,
    rows_deleted bigint,
    rows_skipped bigint,
    row_count bigint,
    digest_high numeric(20, 0),
    digest_low numeric(20, 0),
    error text,
    CONSTRAINT transactions_version UNIQUE (dataset_id, version),
    CONSTRAINT committed_is_complete CHECK (
        status <> 'committed' OR (committed_at IS NOT NULL AND row_count IS NOT NULL AND rows_deleted IS NOT NULL
            AND coalesce(rows_in = rows_added + rows_updated + rows_unchanged + rows_skipped, false))
    )
);
-- What makes writers of one dataset queue.
CREATE UNIQUE INDEX one_open_per_dataset ON lakeward.dataset_transactions (dataset_id) WHERE status = 'open';
CREATE INDEX unpublished ON lakeward.dataset_transactions (dataset_id)
    WHERE status = 'committed' AND published_at IS NULL;
CREATE INDEX transactions_build ON lakeward.dataset_transactions (build_id);

-- In rows of their own, so that a heartbeat never waits for a writer's FOR SHARE lock on the ledger row.
CREATE TABLE lakeward.leases (
    transaction_id bigint PRIMARY KEY REFERENCES lakeward.dataset_transactions,
    fence bigint NOT NULL,
    owner jsonb NOT NULL,
    acquired_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL
);

-- Writers that wait for a dataset's slot, in the order in which they came.
CREATE TABLE lakeward.slot_waiters (
    ticket bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    alive_until timestamptz NOT NULL
);
CREATE INDEX slot_waiters_line ON lakeward.slot_waiters (dataset_id, ticket);

-- Which versions an arm can serve, and from what. Written by decide: the oracle of freshness.
CREATE TABLE lakeward.arm_versions (
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    arm text NOT NULL,
    version bigint NOT NULL,
    -- Postgres arm: rows whose version is below it are not part of this version (the last replace up to it).
    base_version bigint NOT NULL,
    -- Iceberg arm: the snapshot that holds the version, and the one that `main` must still be at to publish it.
    snapshot_id bigint,
    parent_snapshot_id bigint,
    PRIMARY KEY (dataset_id, arm, version)
);

-- Up to which version of each source an output has read. Moves in decide and nowhere else.
CREATE TABLE lakeward.watermarks (
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    source_id bigint NOT NULL REFERENCES lakeward.datasets,
    version bigint NOT NULL,
    PRIMARY KEY (dataset_id, source_id)
);

-- Rows of the Postgres arm --------------------------------------------------------------------------------------------
-- Multi-version: a row is seen at version v if base(v) <= version <= v and (until is null or until > v).
-- `origin` is the version that wrote the row where that is not `version`: a row that was copied from the other arm.
CREATE TABLE lakeward.dataset_rows (
    dataset_id bigint NOT NULL,
    row_id bigint NOT NULL,
    row_index bigint NOT NULL,
    version bigint NOT NULL,
    until bigint,
    origin bigint,
    created_at timestamptz NOT NULL,
    key bytea,
    data jsonb NOT NULL
);
CREATE INDEX dataset_rows_version ON lakeward.dataset_rows (dataset_id, version);
-- Finds the marks that an aborted transaction set.
CREATE INDEX dataset_rows_until ON lakeward.dataset_rows (dataset_id, until) WHERE until IS NOT NULL;

-- Pipelines and logs --------------------------------------------------------------------------------------------------
CREATE TABLE lakeward.pipelines (
    name text PRIMARY KEY,
    spec jsonb NOT NULL,
    fingerprint text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    applied_by text NOT NULL
);
CREATE TABLE lakeward.audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    before jsonb,
    after jsonb
);
-- What happened to each dataset's physical Iceberg table: born, published, moved.
CREATE TABLE lakeward.iceberg_sync_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    dataset_id bigint NOT NULL REFERENCES lakeward.datasets,
    version bigint,
    event text NOT NULL,
    namespace text[],
    snapshot_id bigint,
    metadata_location text
);
