-- name: workspace
-- The one workspace of this database, made on first use.
WITH made AS (
    INSERT INTO lakeward.workspaces (name) VALUES (:name) ON CONFLICT (root, name_key) DO NOTHING RETURNING id
)
SELECT id FROM made UNION ALL SELECT id FROM lakeward.workspaces WHERE name = :name LIMIT 1;

-- name: find_catalog
-- A live catalog by its exact name, else by its slug, unless that is a name that it had before. Locked, so that it is not
-- dropped while something is made in it.
SELECT t.id, t.name, t.slug FROM lakeward.catalogs t
WHERE t.workspace_id = :parent AND t.drop_id IS NULL
  AND (t.name = :name OR (t.slug = :name AND NOT EXISTS (
        SELECT 1 FROM lakeward.old_names o WHERE o.level = 'catalog' AND o.object_id = t.id AND o.name = :name)))
ORDER BY t.name = :name DESC LIMIT 1 FOR SHARE OF t;

-- name: find_schema
SELECT t.id, t.name, t.slug FROM lakeward.schemas t
WHERE t.catalog_id = :parent AND t.drop_id IS NULL
  AND (t.name = :name OR (t.slug = :name AND NOT EXISTS (
        SELECT 1 FROM lakeward.old_names o WHERE o.level = 'schema' AND o.object_id = t.id AND o.name = :name)))
ORDER BY t.name = :name DESC LIMIT 1 FOR SHARE OF t;

-- name: add_catalog
INSERT INTO lakeward.catalogs (workspace_id, name) VALUES (:parent, :name) ON CONFLICT DO NOTHING RETURNING id, slug;

-- name: add_schema
INSERT INTO lakeward.schemas (catalog_id, name) VALUES (:parent, :name) ON CONFLICT DO NOTHING RETURNING id, slug;

-- name: add_dataset
INSERT INTO lakeward.datasets
    (schema_id, name, columns, primary_key, partition_by, iceberg_namespace, iceberg_table, unnumbered, home_namespace,
     home_table)
VALUES (:parent, :name, CAST(:columns AS jsonb), :primary_key, :partition_by, CAST(:iceberg_namespace AS text[]),
        CAST(:iceberg_table AS text), :unnumbered, CAST(:home_namespace AS text[]), CAST(:home_table AS text)) ON CONFLICT DO NOTHING RETURNING id, slug;

-- name: lock_workspace
-- Who adopts a table waits for others who do.
SELECT id FROM lakeward.workspaces WHERE id = :workspace FOR NO KEY UPDATE;

-- name: adopter
-- The live dataset whose table that is, or is about to be.
SELECT t.path, t.slugs FROM lakeward.datasets d JOIN lakeward.tree t ON t.level = 'dataset' AND t.id = d.id
WHERE t.workspace_id = :workspace AND d.drop_id IS NULL
  AND ((coalesce(d.iceberg_table, d.slug) = :iceberg_table
        AND d.iceberg_namespace IS NOT DISTINCT FROM CAST(:iceberg_namespace AS text[])
        AND (d.unnumbered OR EXISTS (SELECT 1 FROM lakeward.arm_versions a
                                     WHERE a.dataset_id = d.id AND a.arm = 'iceberg')))
       OR (d.home_namespace = CAST(:home_namespace AS text[]) AND d.home_table = :home_table))
LIMIT 1;

-- name: by_uid
-- By its text, since what a table says need not be one.
SELECT id FROM lakeward.datasets WHERE CAST(uid AS text) = :uid;

-- name: numbered
UPDATE lakeward.datasets SET unnumbered = false WHERE id = :id AND unnumbered;

-- name: add_route
INSERT INTO lakeward.routes (dataset_id, mode, primary_arm, mirror_arm)
VALUES (:dataset_id, :mode, :primary_arm, :mirror_arm);

-- name: twin
-- The live sibling whose name is the given one or differs only in case or Unicode form, whatever the level.
SELECT t.id, t.name, t.slugs FROM lakeward.tree t
WHERE t.level = :level AND t.parent_id = :parent AND t.drop_id IS NULL AND t.name_key = lakeward.name_key(:name);

-- name: datasets
-- Every live dataset with its route; `:id` narrows to one, dropped or not.
SELECT d.id, d.uid, c.name AS catalog, s.name AS schema, d.name, c.slug AS catalog_slug, s.slug AS schema_slug, d.slug,
       d.columns, d.primary_key, d.partition_by, d.iceberg_namespace, d.iceberg_table, d.unnumbered, d.home_namespace, d.home_table, d.head_version, d.row_count, d.digest_high, d.digest_low,
       d.next_row_id, d.next_row_index, d.status, d.created_at, r.mode, r.primary_arm, r.mirror_arm, r.epoch,
       d.drop_id, p.dropped_at, p.dropped_by, p.undo_until
FROM lakeward.datasets d
JOIN lakeward.schemas s ON s.id = d.schema_id
JOIN lakeward.catalogs c ON c.id = s.catalog_id
JOIN lakeward.routes r ON r.dataset_id = d.id
LEFT JOIN lakeward.drops p ON p.id = d.drop_id
WHERE c.workspace_id = :workspace AND CASE WHEN CAST(:id AS bigint) IS NULL THEN d.drop_id IS NULL ELSE d.id = :id END
ORDER BY c.name COLLATE "C", s.name COLLATE "C", d.name COLLATE "C";

-- name: find_dataset
-- Level by level, as when one is made: the catalog of that exact name, else of that slug; in it the schema; in it the dataset.
-- Live ones only, and not by a slug that is a name which it had before.
WITH catalog AS (
    SELECT c.id FROM lakeward.catalogs c
    WHERE c.workspace_id = :workspace AND c.drop_id IS NULL
      AND (c.name = :catalog OR (c.slug = :catalog AND NOT EXISTS (
            SELECT 1 FROM lakeward.old_names o WHERE o.level = 'catalog' AND o.object_id = c.id AND o.name = :catalog)))
    ORDER BY c.name = :catalog DESC LIMIT 1
), schema AS (
    SELECT s.id FROM lakeward.schemas s JOIN catalog c ON c.id = s.catalog_id
    WHERE s.drop_id IS NULL
      AND (s.name = :schema OR (s.slug = :schema AND NOT EXISTS (
            SELECT 1 FROM lakeward.old_names o WHERE o.level = 'schema' AND o.object_id = s.id AND o.name = :schema)))
    ORDER BY s.name = :schema DESC LIMIT 1
), dataset AS (
    SELECT d.id FROM lakeward.datasets d JOIN schema s ON s.id = d.schema_id
    WHERE d.drop_id IS NULL
      AND (d.name = :dataset OR (d.slug = :dataset AND NOT EXISTS (
            SELECT 1 FROM lakeward.old_names o WHERE o.level = 'dataset' AND o.object_id = d.id AND o.name = :dataset)))
    ORDER BY d.name = :dataset DESC LIMIT 1
)
SELECT d.id, d.uid, c.name AS catalog, s.name AS schema, d.name, c.slug AS catalog_slug, s.slug AS schema_slug, d.slug,
       d.columns, d.primary_key, d.partition_by, d.iceberg_namespace, d.iceberg_table, d.unnumbered, d.home_namespace, d.home_table, d.head_version, d.row_count, d.digest_high, d.digest_low,
       d.next_row_id, d.next_row_index, d.status, d.created_at, r.mode, r.primary_arm, r.mirror_arm, r.epoch,
       d.drop_id, p.dropped_at, p.dropped_by, p.undo_until
FROM lakeward.datasets d
JOIN lakeward.schemas s ON s.id = d.schema_id
JOIN lakeward.catalogs c ON c.id = s.catalog_id
JOIN lakeward.routes r ON r.dataset_id = d.id
LEFT JOIN lakeward.drops p ON p.id = d.drop_id
WHERE d.id = (SELECT id FROM dataset);
