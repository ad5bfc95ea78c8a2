DROP VIEW lakeward.tree;
DROP TABLE lakeward.purge_files;
DROP TABLE lakeward.purges;
DROP TABLE lakeward.old_names;

CREATE OR REPLACE FUNCTION lakeward.assign_slug() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    plain text := lakeward.slug(NEW.name);
    parent bigint := (to_jsonb(NEW) ->> TG_ARGV[0])::bigint;
    held text := CASE WHEN TG_TABLE_NAME = 'workspaces' THEN '' ELSE '' END;
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
    RETURN NEW;
END
$$;

-- What is dropped, or purged, is there again. The slug of what can still come back stays: its table is called by it.
DROP INDEX lakeward.datasets_dropped;
DROP INDEX lakeward.datasets_slug;
DROP INDEX lakeward.datasets_name;
ALTER TABLE lakeward.datasets DISABLE TRIGGER assign_slug;
UPDATE lakeward.datasets SET name = 'dropped ' || id, name_key = 'dropped ' || id,
    slug = CASE WHEN purged_at IS NULL THEN slug ELSE 'dropped_' || id END
WHERE drop_id IS NOT NULL;
ALTER TABLE lakeward.datasets ENABLE TRIGGER assign_slug;
ALTER TABLE lakeward.datasets ADD CONSTRAINT datasets_slug UNIQUE (schema_id, slug);
ALTER TABLE lakeward.datasets ADD CONSTRAINT datasets_name UNIQUE (schema_id, name_key);
ALTER TABLE lakeward.datasets DROP CONSTRAINT purged_was_dropped;
ALTER TABLE lakeward.datasets DROP COLUMN purged_at;
ALTER TABLE lakeward.datasets DROP COLUMN drop_id;

DROP INDEX lakeward.schemas_dropped;
DROP INDEX lakeward.schemas_slug;
DROP INDEX lakeward.schemas_name;
ALTER TABLE lakeward.schemas DISABLE TRIGGER assign_slug;
UPDATE lakeward.schemas SET name = 'dropped ' || id, name_key = 'dropped ' || id,
    slug = CASE WHEN purged_at IS NULL THEN slug ELSE 'dropped_' || id END
WHERE drop_id IS NOT NULL;
ALTER TABLE lakeward.schemas ENABLE TRIGGER assign_slug;
ALTER TABLE lakeward.schemas ADD CONSTRAINT schemas_slug UNIQUE (catalog_id, slug);
ALTER TABLE lakeward.schemas ADD CONSTRAINT schemas_name UNIQUE (catalog_id, name_key);
ALTER TABLE lakeward.schemas DROP CONSTRAINT purged_was_dropped;
ALTER TABLE lakeward.schemas DROP COLUMN purged_at;
ALTER TABLE lakeward.schemas DROP COLUMN drop_id;

DROP INDEX lakeward.catalogs_dropped;
DROP INDEX lakeward.catalogs_slug;
DROP INDEX lakeward.catalogs_name;
ALTER TABLE lakeward.catalogs DISABLE TRIGGER assign_slug;
UPDATE lakeward.catalogs SET name = 'dropped ' || id, name_key = 'dropped ' || id,
    slug = CASE WHEN purged_at IS NULL THEN slug ELSE 'dropped_' || id END
WHERE drop_id IS NOT NULL;
ALTER TABLE lakeward.catalogs ENABLE TRIGGER assign_slug;
ALTER TABLE lakeward.catalogs ADD CONSTRAINT catalogs_slug UNIQUE (workspace_id, slug);
ALTER TABLE lakeward.catalogs ADD CONSTRAINT catalogs_name UNIQUE (workspace_id, name_key);
ALTER TABLE lakeward.catalogs DROP CONSTRAINT purged_was_dropped;
ALTER TABLE lakeward.catalogs DROP COLUMN purged_at;
ALTER TABLE lakeward.catalogs DROP COLUMN drop_id;

DROP TABLE lakeward.drops;
