-- Catalogs, schemas and datasets in one form, as the view `tree` has them. `drop_id` is NULL while they are live.

-- name: children
-- What a name stands for below some parents, or has stood for: live ones by their name, else by their slug; others by any
-- name that they had. What is purged stands for nothing.
SELECT t.*, p.dropped_at, p.dropped_by, p.undo_until, t.name = :name AS by_name,
       EXISTS (SELECT 1 FROM lakeward.old_names o WHERE o.level = t.level AND o.object_id = t.id AND o.name = :name) AS by_old_name
FROM lakeward.tree t LEFT JOIN lakeward.drops p ON p.id = t.drop_id
WHERE t.level = :level AND t.parent_id = ANY (CAST(:parents AS bigint[])) AND t.purged_at IS NULL
  AND (t.name = :name OR t.slug = :name
       OR EXISTS (SELECT 1 FROM lakeward.old_names o WHERE o.level = t.level AND o.object_id = t.id AND o.name = :name))
ORDER BY t.drop_id IS NOT NULL, t.name = :name DESC, t.drop_id DESC, t.id DESC;

-- name: list
-- All objects of a level with what is in them: of a live one what is live, of a dropped one what was dropped with it.
WITH inside AS (
    SELECT t.ids[:depth] AS id, t.drop_id,
           count(*) FILTER (WHERE t.level = 'schema') AS schemas,
           count(*) FILTER (WHERE t.level = 'dataset') AS datasets,
           coalesce(sum(t.row_count), 0)::bigint AS rows
    FROM lakeward.tree t
    WHERE t.workspace_id = :workspace AND cardinality(t.ids) > :depth
    GROUP BY 1, 2
)
SELECT t.*, p.dropped_at, p.dropped_by, p.undo_until,
       coalesce(i.schemas, 0) AS schemas, coalesce(i.datasets, 0) AS datasets,
       coalesce(i.rows, t.row_count) AS rows
FROM lakeward.tree t
LEFT JOIN lakeward.drops p ON p.id = t.drop_id
LEFT JOIN inside i ON i.id = t.id AND i.drop_id IS NOT DISTINCT FROM t.drop_id
WHERE t.level = :level AND t.workspace_id = :workspace AND t.purged_at IS NULL AND (t.drop_id IS NOT NULL) = :dropped
ORDER BY t.path COLLATE "C", t.drop_id;

-- name: parts
-- What is in an object, itself not included: of a live one what is live, of a dropped one what was dropped with it.
SELECT t.level, t.slugs, t.row_count FROM lakeward.tree t
WHERE t.ids[:depth] = :id AND cardinality(t.ids) > :depth AND t.drop_id IS NOT DISTINCT FROM CAST(:drop_id AS bigint)
  AND t.purged_at IS NULL;

-- name: inside
-- What is live in an object, itself included: by level, datasets by id.
SELECT t.level, t.id, t.path FROM lakeward.tree t
WHERE t.ids[:depth] = :id AND cardinality(t.ids) >= :depth AND t.drop_id IS NULL
ORDER BY cardinality(t.ids), t.id;

-- name: rename_catalog
UPDATE lakeward.catalogs SET name = :name WHERE id = :id AND drop_id IS NULL RETURNING id;

-- name: rename_schema
UPDATE lakeward.schemas SET name = :name WHERE id = :id AND drop_id IS NULL RETURNING id;

-- name: rename_dataset
UPDATE lakeward.datasets SET name = :name WHERE id = :id AND drop_id IS NULL RETURNING id;

-- name: name_of_catalog
-- Before a rename, which another one waits for: each keeps the name that it has taken away.
SELECT name FROM lakeward.catalogs WHERE id = :id FOR NO KEY UPDATE;

-- name: name_of_schema
SELECT name FROM lakeward.schemas WHERE id = :id FOR NO KEY UPDATE;

-- name: name_of_dataset
SELECT name FROM lakeward.datasets WHERE id = :id FOR NO KEY UPDATE;

-- name: is_valid_name
SELECT lakeward.is_valid_name(:name) AS valid;

-- name: keep_old_name
INSERT INTO lakeward.old_names (level, object_id, name, renamed_by) VALUES (:level, :id, :name, :actor)
ON CONFLICT (level, object_id, name) DO UPDATE SET renamed_at = clock_timestamp(), renamed_by = :actor;

-- name: drop_old_name
-- It is its name again.
DELETE FROM lakeward.old_names WHERE level = :level AND object_id = :id AND name = :name;

-- name: sibling
-- The live sibling that has the name, or a twin of it: one that differs only in case or Unicode form.
SELECT t.id, t.name FROM lakeward.tree t
WHERE t.level = :level AND t.parent_id = :parent AND t.drop_id IS NULL AND t.name_key = lakeward.name_key(:name);
