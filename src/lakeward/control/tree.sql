-- name: workspace
-- The one workspace of this database, made on first use.
WITH made AS (
    INSERT INTO lakeward.workspaces (name) VALUES (:name) ON CONFLICT (root, name_key) DO NOTHING RETURNING id
)
SELECT id FROM made UNION ALL SELECT id FROM lakeward.workspaces WHERE name = :name LIMIT 1;

-- name: find_catalog
-- A catalog by its exact name, else by its slug.
SELECT id, name FROM lakeward.catalogs
WHERE workspace_id = :parent AND (name = :name OR slug = :name) ORDER BY name = :name DESC LIMIT 1;

-- name: find_schema
SELECT id, name FROM lakeward.schemas
WHERE catalog_id = :parent AND (name = :name OR slug = :name) ORDER BY name = :name DESC LIMIT 1;

-- name: add_catalog
INSERT INTO lakeward.catalogs (workspace_id, name) VALUES (:parent, :name) ON CONFLICT DO NOTHING RETURNING id;

-- name: add_schema
INSERT INTO lakeward.schemas (catalog_id, name) VALUES (:parent, :name) ON CONFLICT DO NOTHING RETURNING id;

-- name: add_dataset
INSERT INTO lakeward.datasets (schema_id, name, columns, primary_key, partition_by)
VALUES (:parent, :name, CAST(:columns AS jsonb), :primary_key, :partition_by) ON CONFLICT DO NOTHING RETURNING id;

-- name: add_route
INSERT INTO lakeward.routes (dataset_id, mode, primary_arm, mirror_arm)
VALUES (:dataset_id, :mode, :primary_arm, :mirror_arm);

-- name: audit
INSERT INTO lakeward.audit_log (actor, action, subject, before, after)
VALUES (:actor, :action, :subject, CAST(:before AS jsonb), CAST(:after AS jsonb));

-- name: twin
-- The sibling whose name is the given one or differs only in case or Unicode form, whatever the level.
SELECT id, name FROM lakeward.datasets WHERE :level = 'dataset' AND schema_id = :parent AND name_key = lakeward.name_key(:name)
UNION ALL
SELECT id, name FROM lakeward.schemas WHERE :level = 'schema' AND catalog_id = :parent AND name_key = lakeward.name_key(:name)
UNION ALL
SELECT id, name FROM lakeward.catalogs WHERE :level = 'catalog' AND workspace_id = :parent AND name_key = lakeward.name_key(:name);

-- name: datasets
-- Every dataset with its route; `:id` narrows to one.
SELECT d.id, d.uid, c.name AS catalog, s.name AS schema, d.name, c.slug AS catalog_slug, s.slug AS schema_slug, d.slug,
       d.columns, d.primary_key, d.partition_by, d.iceberg_namespace, d.iceberg_table, d.head_version, d.row_count, d.digest_high, d.digest_low,
       d.next_row_id, d.next_row_index, d.status, d.created_at, r.mode, r.primary_arm, r.mirror_arm, r.epoch
FROM lakeward.datasets d
JOIN lakeward.schemas s ON s.id = d.schema_id
JOIN lakeward.catalogs c ON c.id = s.catalog_id
JOIN lakeward.routes r ON r.dataset_id = d.id
WHERE c.workspace_id = :workspace AND (CAST(:id AS bigint) IS NULL OR d.id = :id)
ORDER BY c.name COLLATE "C", s.name COLLATE "C", d.name COLLATE "C";

-- name: find_dataset
-- Level by level, as when one is made: the catalog of that exact name, else of that slug; in it the schema; in it the dataset.
WITH catalog AS (
    SELECT id FROM lakeward.catalogs
    WHERE workspace_id = :workspace AND (name = :catalog OR slug = :catalog) ORDER BY name = :catalog DESC LIMIT 1
), schema AS (
    SELECT s.id FROM lakeward.schemas s JOIN catalog c ON c.id = s.catalog_id
    WHERE s.name = :schema OR s.slug = :schema ORDER BY s.name = :schema DESC LIMIT 1
)
SELECT d.id, d.uid, c.name AS catalog, s.name AS schema, d.name, c.slug AS catalog_slug, s.slug AS schema_slug, d.slug,
       d.columns, d.primary_key, d.partition_by, d.iceberg_namespace, d.iceberg_table, d.head_version, d.row_count, d.digest_high, d.digest_low,
       d.next_row_id, d.next_row_index, d.status, d.created_at, r.mode, r.primary_arm, r.mirror_arm, r.epoch
FROM lakeward.datasets d
JOIN lakeward.schemas s ON s.id = d.schema_id
JOIN lakeward.catalogs c ON c.id = s.catalog_id
JOIN lakeward.routes r ON r.dataset_id = d.id
WHERE d.id = (SELECT d.id FROM lakeward.datasets d JOIN schema s ON s.id = d.schema_id
              WHERE d.name = :dataset OR d.slug = :dataset ORDER BY d.name = :dataset DESC LIMIT 1);
