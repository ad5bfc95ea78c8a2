-- name: sources
SELECT name, type, options, tables, added_at, added_by FROM lakeward.sources
WHERE CAST(:name AS text) IS NULL OR name = :name
ORDER BY name COLLATE "C";

-- name: add
INSERT INTO lakeward.sources (name, type, options, tables, added_by)
VALUES (:name, :type, CAST(:options AS jsonb), :tables, :actor)
ON CONFLICT (name) DO NOTHING
RETURNING name, type, options, tables, added_at, added_by;

-- name: remove
DELETE FROM lakeward.sources WHERE name = :name RETURNING name, type, tables;

-- name: feed
SELECT source, relation, position, version FROM lakeward.sync_positions WHERE dataset_id = :dataset_id;

-- name: written_since
-- The newest write after a version, of those that changed rows: what copies, compacts or adopts is none.
SELECT version, writer FROM lakeward.dataset_transactions
WHERE dataset_id = :dataset_id AND version > :version AND status = 'committed' AND kind = 'write'
  AND rows_added + rows_updated + rows_deleted > 0
ORDER BY version DESC LIMIT 1;

-- name: written_by_others
-- The newest write that changed rows and is by none of some writers, since the newest one of one of them.
SELECT version, writer FROM lakeward.dataset_transactions
WHERE dataset_id = :dataset_id AND status = 'committed' AND kind = 'write' AND writer <> ALL (:writers)
  AND rows_added + rows_updated + rows_deleted > 0
  AND version > (SELECT coalesce(max(version), 0) FROM lakeward.dataset_transactions
                 WHERE dataset_id = :dataset_id AND status = 'committed' AND kind = 'write' AND writer = :whole)
ORDER BY version DESC LIMIT 1;

-- name: files
SELECT path, size, state, hash FROM lakeward.source_files WHERE dataset_id = :dataset_id;
