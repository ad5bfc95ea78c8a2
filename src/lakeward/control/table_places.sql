-- name: places
-- Where the Iceberg table of each dataset is, what it holds, and how it came there; `:id` narrows to one dataset.
SELECT d.id AS dataset_id, d.slug, d.iceberg_namespace, d.iceberg_table, held.version, held.snapshot_id,
       born.committed_at AS born_at,
       first.from_namespace AS first_namespace, first.from_table AS first_table,
       last.from_namespace, last.from_table, last.to_namespace, last.to_table, last.way, last.done_at, last.writer,
       going.to_namespace AS going_namespace, going.to_table AS going_table,
       EXISTS (SELECT 1 FROM lakeward.dataset_transactions t
               WHERE t.dataset_id = d.id AND t.status = 'open' AND t.kind = 'backfill') AS backfill
FROM lakeward.datasets d
LEFT JOIN LATERAL (
    SELECT a.version, a.snapshot_id FROM lakeward.arm_versions a
    WHERE a.dataset_id = d.id AND a.arm = 'iceberg' AND a.expired_at IS NULL
    ORDER BY a.version DESC LIMIT 1) AS held ON true
LEFT JOIN LATERAL (
    SELECT t.committed_at FROM lakeward.arm_versions a
    JOIN lakeward.dataset_transactions t ON t.dataset_id = a.dataset_id AND t.version = a.version
    WHERE a.dataset_id = d.id AND a.arm = 'iceberg'
    ORDER BY a.version LIMIT 1) AS born ON true
LEFT JOIN LATERAL (
    SELECT m.from_namespace, m.from_table FROM lakeward.table_moves m
    WHERE m.dataset_id = d.id AND m.done_at IS NOT NULL ORDER BY m.transaction_id LIMIT 1) AS first ON true
LEFT JOIN LATERAL (
    SELECT m.*, t.writer FROM lakeward.table_moves m JOIN lakeward.dataset_transactions t ON t.id = m.transaction_id
    WHERE m.dataset_id = d.id AND m.done_at IS NOT NULL ORDER BY m.transaction_id DESC LIMIT 1) AS last ON true
LEFT JOIN LATERAL (
    SELECT m.to_namespace, m.to_table
    FROM lakeward.dataset_transactions t JOIN lakeward.table_moves m ON m.transaction_id = t.id
    WHERE t.dataset_id = d.id AND t.status = 'open' AND t.kind = 'move') AS going ON true
WHERE CAST(:id AS bigint) IS NULL OR d.id = :id;
