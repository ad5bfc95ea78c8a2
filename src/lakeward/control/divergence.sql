-- The order in which rows are locked stands at the top of ledger.sql.

-- name: unsettled
-- Whether a transaction still has to prepare or to publish: what it found out about `main` is not yet resolved by others.
SELECT 1 FROM lakeward.dataset_transactions
WHERE id = :id AND ((status = 'open' AND fence = :fence) OR (status = 'committed' AND published_at IS NULL));

-- name: unpublished
SELECT 1 FROM lakeward.dataset_transactions
WHERE dataset_id = :dataset_id AND status = 'committed' AND published_at IS NULL;

-- name: set_status
UPDATE lakeward.datasets SET status = :status WHERE id = :dataset_id;

-- name: make_room
-- The open transaction moves up by one version, for the one that comes before it. It has prepared nothing under its old one.
UPDATE lakeward.dataset_transactions t SET version = t.version + 1, parent_version = t.version
FROM lakeward.leases l
WHERE t.id = :id AND t.status = 'open' AND t.fence = :fence
  AND l.transaction_id = t.id AND l.fence = :fence AND l.lease_until > clock_timestamp()
RETURNING t.version;

-- name: add_compaction
-- Committed and published from the start: the other engine has done both.
INSERT INTO lakeward.dataset_transactions
    (dataset_id, version, parent_version, kind, verb, arm, status, build_id, writer, route_epoch, fence,
     committed_at, published_at, ended_at, rows_in, rows_added, rows_updated, rows_unchanged, rows_deleted, rows_skipped,
     row_count, digest_high, digest_low)
VALUES (:dataset_id, :version, :parent_version, 'adopt', 'compact', :arm, 'committed', :build_id, 'storage.compaction',
        :route_epoch, nextval('lakeward.fences'), now(), now(), now(), :row_count, 0, 0, :row_count, 0, 0,
        :row_count, :digest_high, :digest_low);

-- name: open_one
SELECT 1 FROM lakeward.dataset_transactions WHERE dataset_id = :dataset_id AND status = 'open';

-- name: maker
-- The newest transaction that wrote the snapshot to the arm, as a write, as its mirror's, or to bring a version there.
-- Later versions may have been carried along with it.
SELECT t.id, a.version
FROM lakeward.dataset_transactions t
JOIN lakeward.arm_versions a ON a.dataset_id = t.dataset_id
 AND a.version = CASE WHEN t.kind IN ('backfill', 'mirror') THEN t.parent_version ELSE t.version END
WHERE t.dataset_id = :dataset_id AND :arm IN (t.arm, t.mirror_arm) AND t.kind <> 'route' AND t.status = 'committed'
  AND a.arm = :arm AND a.snapshot_id = :snapshot_id
ORDER BY a.version DESC, t.id DESC LIMIT 1;

-- name: start_from
-- What publishing the version has to find at `main`.
UPDATE lakeward.arm_versions SET parent_snapshot_id = :found
WHERE dataset_id = :dataset_id AND arm = :arm AND version = :version;

-- name: unpublish
-- From here on publishing, which recovery does if we don't, sets `main` back.
UPDATE lakeward.dataset_transactions SET published_at = NULL WHERE id = :id;
