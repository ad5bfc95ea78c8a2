-- name: transactions
-- Of these datasets, and behind a transaction in the order that is asked for.
-- Who edited the rows of a version by hand is in the audit log, which is looked at for edits alone.
SELECT t.*, l.owner, edited.actor AS author,
       t.status = 'committed' AND EXISTS (SELECT 1 FROM lakeward.readable_versions v
                                          WHERE v.dataset_id = t.dataset_id AND v.version = t.version) AS readable
FROM lakeward.dataset_transactions t LEFT JOIN lakeward.leases l ON l.transaction_id = t.id
LEFT JOIN LATERAL (
    SELECT a.actor FROM lakeward.audit_log a
    WHERE t.writer = 'manual.table' AND t.status = 'committed'
      AND a.action = :edit AND a.after @> jsonb_build_object('transaction', t.id)
    LIMIT 1
) AS edited ON true
WHERE (CAST(:writer AS text) IS NULL OR t.writer = :writer) AND (CAST(:dataset_id AS bigint) IS NULL OR t.dataset_id = :dataset_id)
  AND (CAST(:status AS text) IS NULL OR t.status = :status)
  AND (CAST(:without AS text) IS NULL OR t.error IS DISTINCT FROM :without)
  AND (CAST(:pipeline AS text) IS NULL OR t.pipeline = :pipeline) AND t.dataset_id = ANY(CAST(:known AS bigint[]))
  AND (CAST(:before AS bigint) IS NULL OR CASE
      WHEN CAST(:dataset_id AS bigint) IS NULL THEN t.id < :before
      ELSE t.version < (SELECT b.version FROM lakeward.dataset_transactions b WHERE b.id = :before) END)
-- A compaction that a writer found comes before it, although its row was made later.
ORDER BY CASE WHEN CAST(:dataset_id AS bigint) IS NULL THEN t.id ELSE t.version END DESC LIMIT :most;

-- name: recoverable
-- What `unfinished` of the ledger looks at, without taking anything over.
SELECT t.dataset_id, t.version, t.arm, t.kind, t.status, l.owner, coalesce(l.lease_until <= clock_timestamp(), true) AS expired
FROM lakeward.dataset_transactions t LEFT JOIN lakeward.leases l ON l.transaction_id = t.id
WHERE t.status = 'open' OR (t.status = 'committed' AND t.published_at IS NULL)
ORDER BY t.dataset_id, t.version;

-- name: activity
-- What was written to a dataset in the last days, and since when it is known. Copies, compactions and routes write nothing.
SELECT count(*) FILTER (WHERE t.committed_at > clock_timestamp() - CAST(:days AS float8) * interval '1 day') AS writes,
       coalesce(sum(t.rows_added + t.rows_updated + t.rows_deleted)
                FILTER (WHERE t.committed_at > clock_timestamp() - CAST(:days AS float8) * interval '1 day'), 0)::bigint
           AS rows_written,
       least(CAST(:days AS float8), coalesce(CAST(extract(epoch FROM clock_timestamp() - min(t.committed_at)) AS float8)
                                             / 86400.0, 0.0)) AS days,
       clock_timestamp() - CAST(:days AS float8) * interval '1 day' AS since
FROM lakeward.dataset_transactions t
WHERE t.dataset_id = :dataset_id AND t.status = 'committed' AND t.kind = 'write';
