-- name: recorded
SELECT row_count, digest_high, digest_low FROM lakeward.dataset_transactions
WHERE dataset_id = :dataset_id AND version = :version AND status = 'committed' AND digest_high IS NOT NULL;

-- name: record
-- The first one stays: a later, other one is what it is compared with.
UPDATE lakeward.dataset_transactions SET digest_high = :high, digest_low = :low
WHERE dataset_id = :dataset_id AND version = :version AND status = 'committed' AND digest_high IS NULL;

-- name: record_head
UPDATE lakeward.datasets SET digest_high = :high, digest_low = :low
WHERE id = :dataset_id AND head_version = :version AND digest_high IS NULL;
