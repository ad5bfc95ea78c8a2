-- What is dropped in one step comes back in one step, and shares a row of this.
CREATE TABLE lakeward.drops (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    level text NOT NULL CHECK (level IN ('catalog', 'schema', 'dataset')),
    dropped_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    dropped_by text NOT NULL,
    -- Fixed when it is dropped: a shorter setting later does not break the promise.
    undo_until timestamptz NOT NULL
);

-- A name is free as soon as its object is dropped; a slug, which files and tables are called by, when it is purged.
ALTER TABLE lakeward.catalogs ADD COLUMN drop_id bigint REFERENCES lakeward.drops;
ALTER TABLE lakeward.catalogs ADD COLUMN purged_at timestamptz;
ALTER TABLE lakeward.catalogs ADD CONSTRAINT purged_was_dropped CHECK (purged_at IS NULL OR drop_id IS NOT NULL);
ALTER TABLE lakeward.catalogs DROP CONSTRAINT catalogs_name;
ALTER TABLE lakeward.catalogs DROP CONSTRAINT catalogs_slug;
CREATE UNIQUE INDEX catalogs_name ON lakeward.catalogs (workspace_id, name_key) WHERE drop_id IS NULL;
CREATE UNIQUE INDEX catalogs_slug ON lakeward.catalogs (workspace_id, slug) WHERE purged_at IS NULL;
CREATE INDEX catalogs_dropped ON lakeward.catalogs (drop_id) WHERE drop_id IS NOT NULL AND purged_at IS NULL;

ALTER TABLE lakeward.schemas ADD COLUMN drop_id bigint REFERENCES lakeward.drops;
ALTER TABLE lakeward.schemas ADD COLUMN purged_at timestamptz;
ALTER TABLE lakeward.schemas ADD CONSTRAINT purged_was_dropped CHECK (purged_at IS NULL OR drop_id IS NOT NULL);
ALTER TABLE lakeward.schemas DROP CONSTRAINT schemas_name;
ALTER TABLE lakeward.schemas DROP CONSTRAINT schemas_slug;
CREATE UNIQUE INDEX schemas_name ON lakeward.schemas (catalog_id, name_key) WHERE drop_id IS NULL;
CREATE UNIQUE INDEX schemas_slug ON lakeward.schemas (catalog_id, slug) WHERE purged_at IS NULL;
CREATE INDEX schemas_dropped ON lakeward.schemas (drop_id) WHERE drop_id IS NOT NULL AND purged_at IS NULL;

ALTER TABLE lakeward.datasets ADD COLUMN drop_id bigint REFERENCES lakeward.drops;
ALTER TABLE lakeward.datasets ADD COLUMN purged_at timestamptz;
ALTER TABLE lakeward.datasets ADD CONSTRAINT purged_was_dropped CHECK (purged_at IS NULL OR drop_id IS NOT NULL);
ALTER TABLE lakeward.datasets DROP CONSTRAINT datasets_name;
ALTER TABLE lakeward.datasets DROP CONSTRAINT datasets_slug;
CREATE UNIQUE INDEX datasets_name ON lakeward.datasets (schema_id, name_key) WHERE drop_id IS NULL;
CREATE UNIQUE INDEX datasets_slug ON lakeward.datasets (schema_id, slug) WHERE purged_at IS NULL;
CREATE INDEX datasets_dropped ON lakeward.datasets (drop_id) WHERE drop_id IS NOT NULL AND purged_at IS NULL;

-- As before, but that a purged sibling's slug is free. Workspaces are never dropped.
CREATE OR REPLACE FUNCTION lakeward.assign_slug() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    plain text := lakeward.slug(NEW.name);
    parent bigint := (to_jsonb(NEW) ->> TG_ARGV[0])::bigint;
    held text := CASE WHEN TG_TABLE_NAME = 'workspaces' THEN '' ELSE ' AND purged_at IS NULL' END;
    digits integer;
    taken boolean;
BEGIN
    IF NOT lakeward.is_valid_name(NEW.name) THEN
        RAISE EXCEPTION 'lakeward: name % is empty, longer than 255 bytes, padded, or has a control character',
            quote_literal(NEW.name) USING ERRCODE = 'check_violation', CONSTRAINT = 'valid_name';
    END IF;
    NEW.name_key := lakeward.name_key(NEW.name);
    IF TG_OP = 'UPDATE' THEN
        NEW.slug := OLD.slug;
        RETURN NEW;
    END IF;
    FOREACH digits IN ARRAY ARRAY[0, 8, 16, 32] LOOP
        NEW.slug := CASE digits WHEN 0 THEN plain
            ELSE rtrim(left(plain, 47 - digits), '_') || '_' || left(md5(NEW.name), digits) END;
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I.%I WHERE %I IS NOT DISTINCT FROM $1 AND slug = $2%s)',
                       TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0], held) INTO taken USING parent, NEW.slug;
        EXIT WHEN NOT taken;
    END LOOP;
    -- A name that was used, renamed, and used again, time after time: each of its slugs may be held, and none is its own
    -- any more. Then the object's own number makes one.
    IF taken THEN
        NEW.slug := rtrim(left(plain, 27), '_') || '_' || NEW.id;
    END IF;
    RETURN NEW;
END
$$;

-- What an object was called before, for whoever still calls it so.
CREATE TABLE lakeward.old_names (
    level text NOT NULL CHECK (level IN ('catalog', 'schema', 'dataset')),
    object_id bigint NOT NULL,
    name text NOT NULL,
    renamed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    renamed_by text NOT NULL,
    PRIMARY KEY (level, object_id, name)
);

-- Said before anything is removed, and every file before the first one goes: whoever stops in between leaves none that
-- nobody knows of.
CREATE TABLE lakeward.purges (
    dataset_id bigint PRIMARY KEY REFERENCES lakeward.datasets,
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When its files were listed below, and where its table keeps them; NULL: there is none, or they are not ours.
    listed_at timestamptz,
    location text
);
CREATE TABLE lakeward.purge_files (
    dataset_id bigint NOT NULL REFERENCES lakeward.purges,
    position integer NOT NULL,
    path text NOT NULL,
    kind text NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (dataset_id, position)
);

-- Every level in one form: `ids`, `path` and `slugs` go from the catalog down.
CREATE VIEW lakeward.tree AS
SELECT 'catalog' AS level, c.id, c.workspace_id, c.workspace_id AS parent_id, ARRAY[c.id] AS ids,
       c.name, c.name_key, c.slug, ARRAY[c.name] AS path, ARRAY[c.slug] AS slugs, c.drop_id, c.purged_at, c.created_at,
       0::bigint AS row_count
FROM lakeward.catalogs c
UNION ALL
SELECT 'schema', s.id, c.workspace_id, s.catalog_id, ARRAY[c.id, s.id], s.name, s.name_key, s.slug,
       ARRAY[c.name, s.name], ARRAY[c.slug, s.slug], s.drop_id, s.purged_at, s.created_at, 0::bigint
FROM lakeward.schemas s JOIN lakeward.catalogs c ON c.id = s.catalog_id
UNION ALL
SELECT 'dataset', d.id, c.workspace_id, d.schema_id, ARRAY[c.id, s.id, d.id], d.name, d.name_key, d.slug,
       ARRAY[c.name, s.name, d.name], ARRAY[c.slug, s.slug, d.slug], d.drop_id, d.purged_at, d.created_at, d.row_count
FROM lakeward.datasets d JOIN lakeward.schemas s ON s.id = d.schema_id JOIN lakeward.catalogs c ON c.id = s.catalog_id;
