-- name: lock
-- First in every transaction that changes or relies on what is here, in a statement of its own: what the next one sees is
-- then no older than the lock. Intent and decide lock the dataset first, too.
SELECT id FROM lakeward.datasets WHERE id = :dataset_id FOR NO KEY UPDATE;

-- name: expire
-- Ends versions beyond the newest `:keep` committed ones, and says what each arm holds. Compactions of ours don't count:
-- they come when they are needed, and must not take a version away that somebody wrote. Never ended: the newest version of
-- an arm (its next write goes on from it), one that somebody keeps, one that an open transaction reads or backfills, and
-- one whose copy on another arm is still to be compared with it.
-- A mark is never taken back, so whoever sees it knows that no reader will be sent there any more.
WITH oldest AS (
    SELECT t.version FROM lakeward.dataset_transactions t
    WHERE t.dataset_id = :dataset_id AND t.status = 'committed' AND t.kind NOT IN ('compact', 'backfill', 'mirror', 'route', 'move')
    ORDER BY t.version DESC OFFSET :keep - 1 LIMIT 1
), ended AS (
    UPDATE lakeward.arm_versions a SET expired_at = clock_timestamp()
    FROM oldest
    WHERE a.dataset_id = :dataset_id AND a.expired_at IS NULL AND a.version < oldest.version
      AND EXISTS (SELECT 1 FROM lakeward.arm_versions n
                  WHERE n.dataset_id = a.dataset_id AND n.arm = a.arm AND n.version > a.version)
      AND NOT EXISTS (SELECT 1 FROM lakeward.kept_versions k
                      WHERE k.dataset_id = a.dataset_id AND k.version = a.version)
      AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions t, jsonb_array_elements(t.windows) AS w
                      WHERE t.status = 'open' AND CAST(w ->> 'source' AS bigint) = a.dataset_id
                        AND CAST(w ->> 'high' AS bigint) = a.version)
      AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions t
                      WHERE t.dataset_id = a.dataset_id AND t.status = 'open' AND t.kind = 'backfill'
                        AND t.parent_version = a.version)
      AND NOT EXISTS (SELECT 1 FROM lakeward.arm_versions u
                      WHERE u.dataset_id = a.dataset_id AND u.version = a.version AND u.unproved_id IS NOT NULL
                        AND u.expired_at IS NULL)
    RETURNING a.arm, a.version, a.expired_at
)
SELECT a.arm, a.version, a.base_version, a.snapshot_id, e.version IS NOT NULL AS ended,
       extract(epoch FROM clock_timestamp() - coalesce(e.expired_at, a.expired_at))::float8 AS expired_seconds
FROM lakeward.arm_versions a LEFT JOIN ended e ON e.arm = a.arm AND e.version = a.version
WHERE a.dataset_id = :dataset_id ORDER BY a.arm, a.version;

-- name: would_expire
-- The same, changing nothing.
WITH oldest AS (
    SELECT t.version FROM lakeward.dataset_transactions t
    WHERE t.dataset_id = :dataset_id AND t.status = 'committed' AND t.kind NOT IN ('compact', 'backfill', 'mirror', 'route', 'move')
    ORDER BY t.version DESC OFFSET :keep - 1 LIMIT 1
), ended AS (
    SELECT a.arm, a.version FROM lakeward.arm_versions a, oldest
    WHERE a.dataset_id = :dataset_id AND a.expired_at IS NULL AND a.version < oldest.version
      AND EXISTS (SELECT 1 FROM lakeward.arm_versions n
                  WHERE n.dataset_id = a.dataset_id AND n.arm = a.arm AND n.version > a.version)
      AND NOT EXISTS (SELECT 1 FROM lakeward.kept_versions k
                      WHERE k.dataset_id = a.dataset_id AND k.version = a.version)
      AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions t, jsonb_array_elements(t.windows) AS w
                      WHERE t.status = 'open' AND CAST(w ->> 'source' AS bigint) = a.dataset_id
                        AND CAST(w ->> 'high' AS bigint) = a.version)
      AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions t
                      WHERE t.dataset_id = a.dataset_id AND t.status = 'open' AND t.kind = 'backfill'
                        AND t.parent_version = a.version)
      AND NOT EXISTS (SELECT 1 FROM lakeward.arm_versions u
                      WHERE u.dataset_id = a.dataset_id AND u.version = a.version AND u.unproved_id IS NOT NULL
                        AND u.expired_at IS NULL)
)
SELECT a.arm, a.version, a.base_version, a.snapshot_id, e.version IS NOT NULL AS ended,
       CASE WHEN e.version IS NOT NULL THEN 0.0
            ELSE extract(epoch FROM clock_timestamp() - a.expired_at)::float8 END AS expired_seconds
FROM lakeward.arm_versions a LEFT JOIN ended e ON e.arm = a.arm AND e.version = a.version
WHERE a.dataset_id = :dataset_id ORDER BY a.arm, a.version;

-- name: forget
-- Last: the rows and files of these versions are gone, and nothing has to be known of them any more.
DELETE FROM lakeward.arm_versions
WHERE dataset_id = :dataset_id AND arm = :arm AND version = ANY (CAST(:versions AS bigint[])) AND expired_at IS NOT NULL;

-- name: open_seconds
-- How long the dataset's open transactions have been open: nothing younger than that may be touched. Empty: none is.
SELECT max(extract(epoch FROM clock_timestamp() - opened_at))::float8 AS seconds
FROM lakeward.dataset_transactions WHERE dataset_id = :dataset_id AND status = 'open';

-- name: only_on
-- The readable versions that one arm alone holds, and whether somebody keeps them.
SELECT a.version, k.kept_by FROM lakeward.readable_versions a
LEFT JOIN lakeward.kept_versions k ON k.dataset_id = a.dataset_id AND k.version = a.version
WHERE a.dataset_id = :dataset_id AND a.arm = :arm
  AND NOT EXISTS (SELECT 1 FROM lakeward.readable_versions o WHERE o.dataset_id = a.dataset_id AND o.version = a.version
                  AND o.arm <> a.arm)
ORDER BY a.version;

-- name: end_arm
-- Ends every version of an arm that neither serves the dataset nor mirrors it; from here on no reader is sent there. None
-- is ended while one is still to be published: that would come to the arm when it has been emptied.
UPDATE lakeward.arm_versions a SET expired_at = clock_timestamp()
FROM lakeward.routes r
WHERE a.dataset_id = :dataset_id AND a.arm = :arm AND a.expired_at IS NULL
  AND r.dataset_id = a.dataset_id AND r.primary_arm <> a.arm AND coalesce(r.mirror_arm, '') <> a.arm
  AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions t
                  WHERE t.dataset_id = a.dataset_id AND a.arm IN (t.arm, t.mirror_arm)
                    AND (t.status = 'open' OR (t.status = 'committed' AND t.published_at IS NULL)));

-- name: held_by
SELECT a.arm, a.version, a.base_version, a.snapshot_id, true AS ended,
       extract(epoch FROM clock_timestamp() - a.expired_at)::float8 AS expired_seconds
FROM lakeward.arm_versions a WHERE a.dataset_id = :dataset_id AND a.arm = :arm ORDER BY a.version;

-- name: committed
-- Whether a version was committed, readable or not.
SELECT 1 FROM lakeward.dataset_transactions
WHERE dataset_id = :dataset_id AND version = :version AND status = 'committed'
  AND kind NOT IN ('backfill', 'mirror', 'route', 'move');

-- name: keep
-- Nothing is returned if no arm can be read at that version.
INSERT INTO lakeward.kept_versions (dataset_id, version, kept_by)
SELECT DISTINCT dataset_id, version, CAST(:kept_by AS text) FROM lakeward.readable_versions
WHERE dataset_id = :dataset_id AND version = :version
ON CONFLICT (dataset_id, version) DO UPDATE SET kept_by = excluded.kept_by
RETURNING version;

-- name: let_go
DELETE FROM lakeward.kept_versions WHERE dataset_id = :dataset_id AND version = :version;

-- name: kept
SELECT version FROM lakeward.kept_versions WHERE dataset_id = :dataset_id ORDER BY version;

-- name: unheld
-- Whether the arm holds no version of the dataset, and nothing is under way on it.
SELECT NOT EXISTS (SELECT 1 FROM lakeward.arm_versions WHERE dataset_id = :dataset_id AND arm = :arm)
   AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions WHERE dataset_id = :dataset_id AND status = 'open')
    AS unheld;
