-- name: begin
-- Under the move's fence, before anything happens in the catalog.
INSERT INTO lakeward.table_moves (transaction_id, dataset_id, from_namespace, from_table, to_namespace, to_table)
SELECT t.id, t.dataset_id, CAST(:from_namespace AS text[]), :from_table, CAST(:to_namespace AS text[]), :to_table
FROM lakeward.dataset_transactions t WHERE t.id = :id AND t.status = 'open' AND t.fence = :fence;

-- name: of
-- What a transaction is to move. Empty: it was never said, so nothing has happened.
SELECT from_namespace, from_table, to_namespace, to_table
FROM lakeward.table_moves WHERE transaction_id = :id;

-- name: places
-- Where a dataset's table can be at this moment: where it is recorded, else where a move that is under way brings it.
SELECT d.slug, d.iceberg_namespace, d.iceberg_table, m.to_namespace, m.to_table
FROM lakeward.datasets d
LEFT JOIN lakeward.dataset_transactions t ON t.dataset_id = d.id AND t.status = 'open' AND t.kind = 'move'
LEFT JOIN lakeward.table_moves m ON m.transaction_id = t.id
WHERE d.id = :dataset_id;

-- name: lock
-- If this process is stopped before it is through, Postgres ends the session: everybody else would wait for it.
SELECT id, set_config('idle_in_transaction_session_timeout', '30s', true)
FROM lakeward.datasets WHERE id = :dataset_id FOR NO KEY UPDATE;

-- name: commit
-- No row returned: the fence is gone. It makes no version, and all rows stay as they are.
UPDATE lakeward.dataset_transactions t
SET status = 'committed', committed_at = now(), ended_at = now(), published_at = now(),
    rows_in = d.row_count, rows_added = 0, rows_updated = 0, rows_unchanged = d.row_count, rows_deleted = 0,
    rows_skipped = 0, row_count = d.row_count, digest_high = d.digest_high, digest_low = d.digest_low
FROM lakeward.datasets d
WHERE t.id = :id AND t.status = 'open' AND t.fence = :fence AND d.id = t.dataset_id
RETURNING t.parent_version;

-- name: place
UPDATE lakeward.datasets
SET iceberg_namespace = CAST(:iceberg_namespace AS text[]), iceberg_table = nullif(CAST(:iceberg_table AS text), slug)
WHERE id = :dataset_id;

-- name: log_move
INSERT INTO lakeward.iceberg_sync_log (dataset_id, version, event, namespace, table_name, snapshot_id, metadata_location)
VALUES (:dataset_id, :version, 'moved', CAST(:namespace AS text[]), :table_name, :snapshot_id, :metadata_location);

-- name: done
UPDATE lakeward.table_moves
SET way = :way, metadata_location = :metadata_location, snapshot_id = :snapshot_id, done_at = now()
WHERE transaction_id = :id;

-- name: release
DELETE FROM lakeward.leases WHERE transaction_id = :id AND fence = :fence;

-- name: last
-- The newest finished move of a dataset: what `undo` takes back.
SELECT m.from_namespace, m.from_table, m.to_namespace, m.to_table, m.way, m.metadata_location, m.done_at
FROM lakeward.table_moves m JOIN lakeward.dataset_transactions t ON t.id = m.transaction_id
WHERE m.dataset_id = :dataset_id AND t.status = 'committed' ORDER BY m.transaction_id DESC LIMIT 1;

-- name: names
-- Under which names tables have been, or may be.
SELECT dataset_id, from_namespace AS namespace, from_table AS name FROM lakeward.table_moves
UNION SELECT dataset_id, to_namespace, to_table FROM lakeward.table_moves;
