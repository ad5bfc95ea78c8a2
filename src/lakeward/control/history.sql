-- name: transactions
SELECT t.*, l.owner FROM lakeward.dataset_transactions t LEFT JOIN lakeward.leases l ON l.transaction_id = t.id
WHERE (CAST(:dataset_id AS bigint) IS NULL OR t.dataset_id = :dataset_id)
  AND (CAST(:status AS text) IS NULL OR t.status = :status)
ORDER BY t.id DESC LIMIT :most;
