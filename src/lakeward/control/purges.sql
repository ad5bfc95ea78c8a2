-- name: due
-- Datasets whose time to come back is over, and those of which a purge was begun. One that an open transaction of another
-- dataset reads, or that was dropped within the grace that readers have who were there before, waits.
SELECT d.id, u.dataset_id IS NOT NULL AS begun FROM lakeward.datasets d
JOIN lakeward.drops p ON p.id = d.drop_id
LEFT JOIN lakeward.purges u ON u.dataset_id = d.id
WHERE d.purged_at IS NULL AND (u.dataset_id IS NOT NULL
  OR (p.undo_until <= clock_timestamp()
      AND p.dropped_at <= clock_timestamp() - CAST(:grace AS float8) * interval '1 second'
      AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions t, jsonb_array_elements(t.windows) AS w
                      WHERE t.status = 'open' AND CAST(w ->> 'source' AS bigint) = d.id)))
ORDER BY d.id;

-- name: lock
SELECT id FROM lakeward.datasets WHERE id = :dataset_id FOR UPDATE;

-- name: begin
-- From here on it can't come back. Nothing is inserted where it came back meanwhile, or is purged.
INSERT INTO lakeward.purges (dataset_id)
SELECT d.id FROM lakeward.datasets d JOIN lakeward.drops p ON p.id = d.drop_id
WHERE d.id = :dataset_id AND d.purged_at IS NULL AND p.undo_until <= clock_timestamp()
ON CONFLICT DO NOTHING;

-- name: begun
SELECT listed_at, location FROM lakeward.purges WHERE dataset_id = :dataset_id;

-- name: end_versions
-- Whatever an arm holds, nobody reads it any more.
UPDATE lakeward.arm_versions SET expired_at = clock_timestamp() WHERE dataset_id = :dataset_id AND expired_at IS NULL;

-- name: lock_purge
-- One process at a time lists the files.
SELECT listed_at, location FROM lakeward.purges WHERE dataset_id = :dataset_id FOR UPDATE;

-- name: add_file
INSERT INTO lakeward.purge_files (dataset_id, position, path, kind, bytes)
VALUES (:dataset_id, :position, :path, :kind, :bytes);

-- name: listed
UPDATE lakeward.purges SET listed_at = clock_timestamp(), location = :location WHERE dataset_id = :dataset_id;

-- name: files
SELECT position, path, kind, bytes FROM lakeward.purge_files
WHERE dataset_id = :dataset_id AND position > :after ORDER BY position LIMIT :most;

-- name: forget_file
DELETE FROM lakeward.purge_files WHERE dataset_id = :dataset_id AND position = :position;

-- name: forget_rules
-- What is kept of it is its past: the ledger, comparisons, judgements, the audit log.
WITH flags AS (
    DELETE FROM lakeward.flags WHERE dataset_id = :dataset_id
), rules AS (
    DELETE FROM lakeward.ignore_rules WHERE dataset_id = :dataset_id
), keys AS (
    DELETE FROM lakeward.idempotency_keys WHERE dataset_id = :dataset_id
), kept AS (
    DELETE FROM lakeward.kept_versions WHERE dataset_id = :dataset_id
), names AS (
    DELETE FROM lakeward.old_names WHERE level = 'dataset' AND object_id = :dataset_id
), files AS (
    DELETE FROM lakeward.source_files WHERE dataset_id = :dataset_id
)
DELETE FROM lakeward.arm_versions WHERE dataset_id = :dataset_id;

-- name: forget_purge
DELETE FROM lakeward.purges WHERE dataset_id = :dataset_id RETURNING begun_at;

-- name: holders
-- The datasets, dropped ones too, of which an arm has something; but none of which it is losing everything right now.
SELECT DISTINCT a.dataset_id FROM lakeward.arm_versions a WHERE a.arm = :arm
  AND NOT EXISTS (SELECT 1 FROM lakeward.purges u WHERE u.dataset_id = a.dataset_id AND u.listed_at IS NOT NULL)
ORDER BY a.dataset_id;

-- name: purged
UPDATE lakeward.datasets SET purged_at = clock_timestamp() WHERE id = :dataset_id AND purged_at IS NULL;

-- name: is_purged
SELECT 1 FROM lakeward.datasets WHERE id = :dataset_id AND purged_at IS NOT NULL;

-- name: due_parents
-- Dropped schemas, then catalogs, whose time is over and of which nothing is left; with the wait that has to be reported.
SELECT t.level, t.id, t.ids, t.path, t.slugs, t.created_at, t.drop_id, p.dropped_at, p.dropped_by, p.undo_until
FROM lakeward.tree t JOIN lakeward.drops p ON p.id = t.drop_id
WHERE t.workspace_id = :workspace AND t.level = :level AND t.purged_at IS NULL AND p.undo_until <= clock_timestamp()
  AND NOT EXISTS (SELECT 1 FROM lakeward.tree c
                  WHERE c.ids[:depth] = t.id AND cardinality(c.ids) > :depth AND c.purged_at IS NULL)
ORDER BY t.id;

-- name: purged_schema
UPDATE lakeward.schemas s SET purged_at = clock_timestamp()
WHERE s.id = :id AND s.drop_id IS NOT NULL AND s.purged_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM lakeward.datasets d WHERE d.schema_id = s.id AND d.purged_at IS NULL) RETURNING id;

-- name: purged_catalog
UPDATE lakeward.catalogs c SET purged_at = clock_timestamp()
WHERE c.id = :id AND c.drop_id IS NOT NULL AND c.purged_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM lakeward.schemas s WHERE s.catalog_id = c.id AND s.purged_at IS NULL) RETURNING id;

-- name: forget_old_names
DELETE FROM lakeward.old_names WHERE level = :level AND object_id = :id;
