-- name: last_writes
-- A copy between the arms, or another engine's compaction, is no write: it raises the head, and changes no row. The sources
-- are those that the write read and no others that earlier ones did; how far, their watermarks say.
SELECT t.dataset_id, t.version, t.fingerprint, unpublished.id IS NOT NULL AS unpublished,
       coalesce((SELECT jsonb_object_agg(w.source_id, w.version) FROM lakeward.watermarks w
                 WHERE w.dataset_id = t.dataset_id
                   AND w.source_id IN (SELECT (each ->> 'source')::bigint
                                       FROM jsonb_array_elements(t.windows) AS each)), '{}') AS watermarks
FROM unnest(CAST(:ids AS bigint[])) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT * FROM lakeward.dataset_transactions
    WHERE dataset_id = wanted.id AND (kind = 'write' OR verb IN ('adopt', 'renumber')) AND status = 'committed'
    ORDER BY version DESC LIMIT 1
) AS t
LEFT JOIN LATERAL (
    SELECT id FROM lakeward.dataset_transactions
    WHERE dataset_id = wanted.id AND status = 'committed' AND published_at IS NULL LIMIT 1
) AS unpublished ON true;

-- name: decided
-- Of several builds the one that was committed.
SELECT build_id FROM lakeward.dataset_transactions
WHERE build_id = ANY(:ids) AND status = 'committed' AND kind = 'write'
LIMIT 1;
