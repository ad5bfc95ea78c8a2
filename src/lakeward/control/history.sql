-- name: transactions
SELECT t.*, l.owner FROM lakeward.dataset_transactions t LEFT JOIN lakeward.leases l ON l.transaction_id = t.id
WHERE (CAST(:dataset_id AS bigint) IS NULL OR t.dataset_id = :dataset_id)
  AND (CAST(:status AS text) IS NULL OR t.status = :status)
  AND (CAST(:without AS text) IS NULL OR t.error IS DISTINCT FROM :without)
-- A compaction that a writer found comes before it, although its row was made later.
ORDER BY CASE WHEN CAST(:dataset_id AS bigint) IS NULL THEN t.id ELSE t.version END DESC LIMIT :most;

-- name: recoverable
-- What `unfinished` of the ledger looks at, without taking anything over.
SELECT t.dataset_id, t.version, t.arm, t.status, l.owner, coalesce(l.lease_until <= clock_timestamp(), true) AS expired
FROM lakeward.dataset_transactions t LEFT JOIN lakeward.leases l ON l.transaction_id = t.id
WHERE t.status = 'open' OR (t.status = 'committed' AND t.published_at IS NULL)
ORDER BY t.dataset_id, t.version;
