-- name: last_builds
-- The newest committed version of each dataset that a pipeline wrote, with what it had read by then. What somebody wrote by
-- hand since is none: it stays as it is, and the next delta goes on from the build before it.
SELECT t.dataset_id, t.version, t.fingerprint,
       coalesce((SELECT jsonb_object_agg(each ->> 'source', (each ->> 'high')::bigint)
                 FROM jsonb_array_elements(t.windows) AS each), '{}') AS watermarks
FROM unnest(CAST(:ids AS bigint[])) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT * FROM lakeward.dataset_transactions
    WHERE dataset_id = wanted.id AND kind = 'write' AND fingerprint IS NOT NULL AND status = 'committed'
    ORDER BY version DESC LIMIT 1
) AS t;

-- name: happened
-- What the versions (low, high] of each dataset did to its rows, all together. Copies and compactions did nothing.
SELECT wanted.id AS dataset_id, count(t.id) AS versions,
       coalesce(sum(t.rows_updated), 0)::bigint AS updated,
       coalesce(sum(t.rows_deleted) FILTER (WHERE t.verb <> 'replace'), 0)::bigint AS deleted,
       coalesce(bool_or(t.verb = 'replace' AND t.rows_deleted > 0), false) AS replaced,
       coalesce(bool_or(t.verb IN ('adopt', 'renumber')), false) AS adopted
FROM unnest(CAST(:ids AS bigint[]), CAST(:lows AS bigint[]), CAST(:highs AS bigint[])) AS wanted (id, low, high)
LEFT JOIN lakeward.dataset_transactions t
    ON t.dataset_id = wanted.id AND t.status = 'committed' AND t.version > wanted.low AND t.version <= wanted.high
   AND (t.kind = 'write' OR t.verb IN ('adopt', 'renumber'))
GROUP BY wanted.id;
