-- name: glance
-- Every live dataset and what is to be said of it, in one question: no row of a dataset is looked at or counted.
WITH last AS MATERIALIZED (
    -- The newest write; copies between the arms and compactions change no row, and are none. As in last_writes.sql.
    SELECT d.id AS dataset_id, t.*
    FROM lakeward.datasets d
    CROSS JOIN LATERAL (
        SELECT version, committed_at, pipeline, fingerprint, windows FROM lakeward.dataset_transactions
        WHERE dataset_id = d.id AND (kind = 'write' OR verb IN ('adopt', 'renumber')) AND status = 'committed'
        ORDER BY version DESC LIMIT 1
    ) AS t
    WHERE d.drop_id IS NULL AND d.head_version > 0
), stale AS (
    SELECT l.dataset_id, array_agg(s.dataset_id ORDER BY s.dataset_id) AS sources
    FROM last l
    CROSS JOIN LATERAL jsonb_array_elements(l.windows) AS read
    JOIN lakeward.watermarks w ON w.dataset_id = l.dataset_id AND w.source_id = (read ->> 'source')::bigint
    JOIN last s ON s.dataset_id = w.source_id AND s.version > w.version
    WHERE l.fingerprint IS NOT NULL AND EXISTS (SELECT 1 FROM lakeward.pipelines p WHERE p.name = l.pipeline)
    GROUP BY l.dataset_id
), unpublished AS (
    SELECT DISTINCT dataset_id FROM lakeward.dataset_transactions WHERE status = 'committed' AND published_at IS NULL
), mirrored AS (
    SELECT r.dataset_id, held.version FROM lakeward.routes r
    CROSS JOIN LATERAL (SELECT max(a.version) AS version FROM lakeward.readable_versions a
                        WHERE a.dataset_id = r.dataset_id AND a.arm = r.mirror_arm) AS held
    WHERE r.mirror_arm IS NOT NULL
)
SELECT d.id, c.name AS catalog, s.name AS schema, d.name, c.slug AS catalog_slug, s.slug AS schema_slug, d.slug,
       d.head_version, d.row_count, d.status, d.created_at, r.mode, r.primary_arm, r.mirror_arm,
       last.committed_at AS written_at, last.pipeline, stale.sources AS newer_sources,
       unpublished.dataset_id IS NOT NULL AS unpublished, mirrored.version AS mirror_version,
       failed.error, failed.ended_at AS failed_at, open.opened_at AS writing_since, f.to_arm AS flipping_to,
       EXISTS (SELECT 1 FROM lakeward.expectation_results e
               WHERE e.dataset_id = d.id AND e.version = last.version AND e.outcome IN ('failed', 'no data')) AS warned
FROM lakeward.datasets d
JOIN lakeward.schemas s ON s.id = d.schema_id
JOIN lakeward.catalogs c ON c.id = s.catalog_id
JOIN lakeward.routes r ON r.dataset_id = d.id
LEFT JOIN last ON last.dataset_id = d.id
LEFT JOIN stale ON stale.dataset_id = d.id
LEFT JOIN unpublished ON unpublished.dataset_id = d.id
LEFT JOIN mirrored ON mirrored.dataset_id = d.id
LEFT JOIN lakeward.dataset_transactions open ON open.dataset_id = d.id AND open.status = 'open'
LEFT JOIN lakeward.flips f ON f.dataset_id = d.id AND f.ended_at IS NULL
LEFT JOIN LATERAL (
    -- Only what failed after the last write: later ones were in order.
    SELECT t.error, t.ended_at FROM lakeward.dataset_transactions t
    WHERE t.dataset_id = d.id AND t.version > coalesce(last.version, 0) AND t.status = 'aborted'
      AND t.error IS NOT NULL AND t.error <> :nothing
    ORDER BY t.version DESC LIMIT 1
) AS failed ON true
WHERE c.workspace_id = :workspace AND d.drop_id IS NULL
ORDER BY c.name COLLATE "C", s.name COLLATE "C", d.name COLLATE "C";
