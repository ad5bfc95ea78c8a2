-- name: versions
-- The versions of one model, or of all, without their files. One that a build made is there if that build is committed, by
-- the same commit: it has transactions then, which name the datasets that the build wrote.
SELECT m.name, m.version, m.format, m.sha256, m.size, m.entry, m.origin, m.features, m.outputs, m.added_at, m.added_by,
       m.build_id, built.datasets
FROM lakeward.models m
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(concat_ws('.', c.name, s.name, d.name) ORDER BY c.name, s.name, d.name), '{}') AS datasets
    FROM lakeward.dataset_transactions t
    JOIN lakeward.datasets d ON d.id = t.dataset_id
    JOIN lakeward.schemas s ON s.id = d.schema_id
    JOIN lakeward.catalogs c ON c.id = s.catalog_id
    WHERE t.build_id = m.build_id AND t.status = 'committed'
) AS built
WHERE (CAST(:name AS text) IS NULL OR m.name = :name) AND (m.build_id IS NULL OR cardinality(built.datasets) > 0)
ORDER BY m.name COLLATE "C", m.version;

-- name: lock
-- Until the end of the transaction: versions are numbered one after the other.
SELECT pg_advisory_xact_lock(hashtextextended('lakeward.models', 0));

-- name: taken
-- The highest version of each name, also of those that are not there yet.
SELECT name, max(version) AS version FROM lakeward.models GROUP BY name;

-- name: aborted
-- Versions of builds that were not committed and can't be any more. A build has its transactions before it makes a model.
SELECT m.name, m.version, m.size
FROM lakeward.models m
WHERE m.build_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions t
                  WHERE t.build_id = m.build_id AND t.status IN ('open', 'committed'))
ORDER BY m.name COLLATE "C", m.version;

-- name: remove
DELETE FROM lakeward.models WHERE name = :name AND version = :version;

-- name: remove_files
DELETE FROM lakeward.model_files f WHERE NOT EXISTS (SELECT 1 FROM lakeward.models m WHERE m.sha256 = f.sha256);

-- name: store_file
INSERT INTO lakeward.model_files (sha256, content)
VALUES (:sha256, :content)
ON CONFLICT (sha256) DO NOTHING;

-- name: store
INSERT INTO lakeward.models
    (name, version, format, sha256, size, entry, origin, features, outputs, added_by, build_id)
VALUES (:name, :version, :format, :sha256, :size, :entry, :origin, CAST(:features AS jsonb), CAST(:outputs AS jsonb),
        :actor, :build_id)
RETURNING added_at;

-- name: content
SELECT content FROM lakeward.model_files WHERE sha256 = :sha256;
