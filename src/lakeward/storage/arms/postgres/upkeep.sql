-- Rows are found by the table's indexes and locked as they are found; those that another one is deleting are passed by.
-- Rows that something replaced are in another index than those that nothing did: each of the two is asked for itself.

-- name: delete_range
-- What is held is known from before. A version that was brought to the arm since, under the number that it has on another
-- one, stays, and so do rows that are being brought: whoever sees one of them sees its transaction, or what that decided.
WITH gone AS (
    DELETE FROM lakeward.dataset_rows WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM lakeward.dataset_rows
        WHERE dataset_id = :dataset_id AND version BETWEEN :low AND :high AND until IS NULL
          AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions b
                          WHERE b.dataset_id = :dataset_id AND b.status = 'open' AND b.kind IN ('backfill', 'mirror'))
          AND NOT EXISTS (SELECT 1 FROM lakeward.arm_versions a
                          WHERE a.dataset_id = :dataset_id AND a.arm = 'postgres' AND a.expired_at IS NULL
                            AND dataset_rows.version BETWEEN a.base_version AND a.version)
        LIMIT :chunk FOR UPDATE SKIP LOCKED
    ) || ARRAY(
        SELECT ctid FROM lakeward.dataset_rows
        WHERE dataset_id = :dataset_id AND version BETWEEN :low AND :high AND until > :low
          AND NOT EXISTS (SELECT 1 FROM lakeward.arm_versions a
                          WHERE a.dataset_id = :dataset_id AND a.arm = 'postgres' AND a.expired_at IS NULL
                            AND dataset_rows.version BETWEEN a.base_version AND a.version)
        LIMIT :chunk FOR UPDATE SKIP LOCKED
    )) RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: count_range
SELECT count(*) AS rows FROM (
    SELECT 1 FROM lakeward.dataset_rows
    WHERE dataset_id = :dataset_id AND version BETWEEN :low AND :high AND until IS NULL
      AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions b
                      WHERE b.dataset_id = :dataset_id AND b.status = 'open' AND b.kind IN ('backfill', 'mirror'))
    UNION ALL
    SELECT 1 FROM lakeward.dataset_rows
    WHERE dataset_id = :dataset_id AND version BETWEEN :low AND :high AND until > :low
) AS dead;

-- name: delete_replaced
WITH gone AS (
    DELETE FROM lakeward.dataset_rows WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM lakeward.dataset_rows r
        WHERE r.dataset_id = :dataset_id AND r.until <= :newest
          AND NOT EXISTS (
              SELECT 1 FROM unnest(CAST(:bases AS bigint[]), CAST(:versions AS bigint[])) AS needed (base, version)
              WHERE r.version BETWEEN needed.base AND needed.version AND r.until > needed.version)
        LIMIT :chunk FOR UPDATE OF r SKIP LOCKED
    )) RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: count_replaced
SELECT count(*) AS rows FROM lakeward.dataset_rows r
WHERE r.dataset_id = :dataset_id AND r.until <= :newest
  AND NOT EXISTS (
      SELECT 1 FROM unnest(CAST(:bases AS bigint[]), CAST(:versions AS bigint[])) AS needed (base, version)
      WHERE r.version BETWEEN needed.base AND needed.version AND r.until > needed.version);

-- name: delete_aborted
WITH gone AS (
    DELETE FROM lakeward.dataset_rows WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM lakeward.dataset_rows
        WHERE dataset_id = :dataset_id AND until IS NULL AND version = ANY (ARRAY(
            SELECT version FROM lakeward.dataset_transactions WHERE dataset_id = :dataset_id AND status = 'aborted'))
        LIMIT :chunk FOR UPDATE SKIP LOCKED
    )) RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: count_aborted
SELECT count(*) AS rows FROM lakeward.dataset_rows
WHERE dataset_id = :dataset_id AND until IS NULL AND version = ANY (ARRAY(
    SELECT version FROM lakeward.dataset_transactions WHERE dataset_id = :dataset_id AND status = 'aborted'));

-- name: replaced
-- Rows that a later version has replaced, and that a version which is still readable may have. The index is all it reads.
SELECT count(*) AS rows FROM lakeward.dataset_rows WHERE dataset_id = :dataset_id AND until > 0;
