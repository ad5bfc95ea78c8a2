-- name: followed
-- The sources whose logs of changes are read, and how.
SELECT source, label, mode, begun_at, begun_by FROM lakeward.followed_sources
WHERE CAST(:source AS text) IS NULL OR source = :source
ORDER BY source COLLATE "C";

-- name: begin
INSERT INTO lakeward.followed_sources (source, label, mode, begun_by) VALUES (:source, :label, :mode, :actor)
ON CONFLICT (source) DO NOTHING;

-- name: end
DELETE FROM lakeward.followed_sources WHERE source = :source RETURNING source;

-- name: tables
-- Which dataset each followed table feeds, and up to where that is decided.
SELECT f.relation, f.dataset_id, p.position, p.version, p.synced_at AS at
FROM lakeward.followed_tables f
LEFT JOIN lakeward.sync_positions p
    ON p.dataset_id = f.dataset_id AND p.source = f.source AND p.relation = f.relation
WHERE f.source = :source
ORDER BY f.relation COLLATE "C";

-- name: add
INSERT INTO lakeward.followed_tables (source, relation, dataset_id) VALUES (:source, :relation, :dataset_id)
ON CONFLICT (source, relation) DO UPDATE SET dataset_id = excluded.dataset_id;

-- name: remove
DELETE FROM lakeward.followed_tables WHERE source = :source AND relation = ANY(:relations);

-- name: forget
-- The log does not lead on from these positions any more. The source still feeds the datasets.
UPDATE lakeward.sync_positions p SET position = NULL
FROM lakeward.followed_tables f
WHERE f.source = :source AND f.relation = ANY(:relations)
  AND p.dataset_id = f.dataset_id AND p.source = f.source AND p.relation = f.relation;

-- name: follower
-- The source whose log feeds a dataset.
SELECT source FROM lakeward.followed_tables WHERE dataset_id = :dataset_id;
