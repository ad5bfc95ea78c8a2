-- The order in which rows are locked stands at the top of ledger.sql.

-- name: lock
-- If this process is stopped before it is through, Postgres ends the session: everybody else would wait for it.
SELECT id, set_config('idle_in_transaction_session_timeout', '30s', true)
FROM lakeward.datasets WHERE id = :dataset_id FOR NO KEY UPDATE;

-- name: moving
SELECT 1 FROM lakeward.dataset_transactions WHERE dataset_id = :dataset_id AND status = 'open' AND kind = 'move';

-- name: unproved
SELECT version, base_version, snapshot_id, parent_snapshot_id, unproved_id AS unproved FROM lakeward.arm_versions
WHERE dataset_id = :dataset_id AND arm = :arm AND unproved_id IS NOT NULL AND expired_at IS NULL;

-- name: prove
-- The backfill is named, and not the version alone: another one may have brought the same version anew.
UPDATE lakeward.arm_versions SET unproved_id = NULL
WHERE dataset_id = :dataset_id AND arm = :arm AND version = :version AND unproved_id = :unproved AND expired_at IS NULL
RETURNING version;

-- name: unpublish
-- What keeps the slot until it is published, by us or by recovery.
UPDATE lakeward.dataset_transactions SET published_at = NULL WHERE id = :unproved;
