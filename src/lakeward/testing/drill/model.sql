-- name: committed
-- The versions that the ledger says are committed, oldest first.
SELECT version, parent_version, kind, verb, pipeline, build_id, committed_at, row_count
FROM lakeward.dataset_transactions
WHERE dataset_id = :dataset_id AND status = 'committed' AND version > :after
    AND kind NOT IN ('backfill', 'mirror', 'route', 'move') ORDER BY version;

-- name: left_over
-- What recovery should have finished: open or unpublished transactions, leases, rows of versions that nobody committed.
SELECT 'version ' || version || ' is still ' || CASE status WHEN 'open' THEN 'open' ELSE 'unpublished' END AS what
FROM lakeward.dataset_transactions
WHERE dataset_id = :dataset_id AND (status = 'open' OR (status = 'committed' AND published_at IS NULL))
UNION ALL
SELECT 'version ' || t.version || ' has a lease and is ' || t.status
FROM lakeward.leases l JOIN lakeward.dataset_transactions t ON t.id = l.transaction_id
WHERE t.dataset_id = :dataset_id
UNION ALL
SELECT DISTINCT 'rows of version ' || r.version || ', which is not committed'
FROM lakeward.dataset_rows r
WHERE r.dataset_id = :dataset_id AND NOT EXISTS (
    SELECT 1 FROM lakeward.dataset_transactions t
    WHERE t.dataset_id = r.dataset_id AND t.version = r.version AND t.status = 'committed');

-- name: watermark
SELECT version FROM lakeward.watermarks WHERE dataset_id = :dataset_id AND source_id = :source_id;
