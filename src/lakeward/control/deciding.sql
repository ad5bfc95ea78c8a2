-- Decide's statements, but for the locks and the lease, which are the ledger's. The order of locks stands in ledger.sql.

-- name: hold_route
-- Decide: a switch of the route waits until we are through, or we see its new epoch.
SELECT epoch FROM lakeward.routes WHERE dataset_id = :dataset_id FOR SHARE;

-- name: decide
-- No row returned: lease or fence is gone.
UPDATE lakeward.dataset_transactions t
SET status = 'committed', committed_at = now(), ended_at = now(),
    published_at = CASE WHEN :publishes THEN NULL ELSE now() END,
    rows_in = :rows_in, rows_added = :rows_added, rows_updated = :rows_updated, rows_unchanged = :rows_unchanged,
    rows_deleted = :rows_deleted, rows_skipped = :rows_skipped, row_count = :row_count,
    digest_high = :digest_high, digest_low = :digest_low, mirror_error = :mirror_error
FROM lakeward.leases l
WHERE t.id = :id AND t.status = 'open' AND t.fence = :fence
  AND l.transaction_id = t.id AND l.fence = :fence AND l.lease_until > clock_timestamp()
RETURNING t.committed_at;

-- name: advance_head
-- Each write to a table records where that is: one that was emptied and went may have been made anew, somewhere else.
UPDATE lakeward.datasets
SET head_version = :version, row_count = :row_count, digest_high = :digest_high, digest_low = :digest_low,
    next_row_id = :next_row_id, next_row_index = :next_row_index,
    iceberg_namespace = CASE WHEN CAST(:iceberg_table AS text) IS NULL THEN iceberg_namespace
                             ELSE CAST(:iceberg_namespace AS text[]) END,
    iceberg_table = CASE WHEN CAST(:iceberg_table AS text) IS NULL THEN iceberg_table
                         ELSE nullif(CAST(:iceberg_table AS text), slug) END
WHERE id = :dataset_id AND head_version = :parent_version;

-- name: place_table
-- Of a transaction that makes no version: the head stays.
UPDATE lakeward.datasets
SET iceberg_namespace = CASE WHEN CAST(:iceberg_table AS text) IS NULL THEN iceberg_namespace
                             ELSE CAST(:iceberg_namespace AS text[]) END,
    iceberg_table = CASE WHEN CAST(:iceberg_table AS text) IS NULL THEN iceberg_table
                         ELSE nullif(CAST(:iceberg_table AS text), slug) END
WHERE id = :dataset_id;

-- name: set_route
UPDATE lakeward.routes SET mode = :mode, primary_arm = :primary_arm, mirror_arm = :mirror_arm, epoch = epoch + 1
WHERE dataset_id = :dataset_id;

-- name: record_mirrored
INSERT INTO lakeward.arm_versions
    (dataset_id, arm, version, base_version, snapshot_id, parent_snapshot_id, unproved_id)
VALUES (:dataset_id, :arm, :version, :base_version, :snapshot_id, :parent_snapshot_id, :unproved);

-- name: record_parity
INSERT INTO lakeward.parity_checks (dataset_id, version, kind, equal, rows, details)
VALUES (:dataset_id, :version, :kind, :equal, :rows, CAST(:details AS jsonb));

-- name: record_arm_version
-- The base of a Postgres version is the last one that put every row in place anew: this one, or that of the newest version
-- that the arm holds, which it goes on from: its parent, or, where it was behind and is brought what it missed, an older one.
INSERT INTO lakeward.arm_versions (dataset_id, arm, version, base_version, snapshot_id, parent_snapshot_id)
SELECT :dataset_id, :arm, :version,
       CASE WHEN :rebases THEN :version ELSE coalesce((
           SELECT base_version FROM lakeward.arm_versions
           WHERE dataset_id = :dataset_id AND arm = :arm AND version <= :parent_version
           ORDER BY version DESC LIMIT 1), :version) END,
       :snapshot_id, :parent_snapshot_id;

-- name: carry_arm_versions
-- A copy or compaction changes no row, so every other arm that holds the parent version holds this one too, in the same
-- snapshot; but no copy that was not compared yet, which what was written since is brought to later.
INSERT INTO lakeward.arm_versions (dataset_id, arm, version, base_version, snapshot_id, parent_snapshot_id)
SELECT dataset_id, arm, :version, base_version, snapshot_id, parent_snapshot_id
FROM lakeward.readable_versions WHERE dataset_id = :dataset_id AND version = :parent_version AND arm <> :arm;

-- name: record_watermark
INSERT INTO lakeward.watermarks (dataset_id, source_id, version) VALUES (:dataset_id, :source_id, :version)
ON CONFLICT (dataset_id, source_id) DO UPDATE SET version = excluded.version;

-- name: record_position
INSERT INTO lakeward.sync_positions (dataset_id, source, relation, position, version)
VALUES (:dataset_id, :source, :relation, CAST(:position AS jsonb), :version)
ON CONFLICT (dataset_id) DO UPDATE SET source = excluded.source, relation = excluded.relation,
    position = excluded.position, version = excluded.version, synced_at = now();

-- name: forget_files
-- Decide of a write after which the dataset has the rows of the files that it read, and of no others.
DELETE FROM lakeward.source_files WHERE dataset_id = :dataset_id;

-- name: record_files
INSERT INTO lakeward.source_files (dataset_id, path, size, state, hash, version)
SELECT :dataset_id, file.path, file.size, file.state, file.hash, :version
FROM unnest(CAST(:paths AS text[]), CAST(:sizes AS bigint[]), CAST(:states AS text[]), CAST(:hashes AS text[]))
     AS file (path, size, state, hash)
ON CONFLICT (dataset_id, md5(path)) DO UPDATE SET size = excluded.size, state = excluded.state, hash = excluded.hash,
    version = excluded.version, read_at = now();

-- name: resolve
-- Decide of an adopted snapshot: the divergence ends.
UPDATE lakeward.datasets SET status = 'ok' WHERE id = :dataset_id;

-- name: supersede
-- What could not be published need not be any more: `main` is at the adopted snapshot, or goes on from there.
UPDATE lakeward.dataset_transactions SET published_at = now()
WHERE dataset_id = :dataset_id AND status = 'committed' AND published_at IS NULL AND version < :version;
