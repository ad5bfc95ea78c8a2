-- Whoever locks rows of several of these tables in one transaction takes them in this order, and rows of one table by
-- ascending id: datasets, routes, dataset_transactions, leases. Two that took them in another order would each hold what
-- the other one waits for, and Postgres would end one of them: a decide, say, after an hour of compute.

-- name: lock_dataset
-- Waits for a decide under way, so that what it returns is the head that the new transaction starts from. Without the
-- lock an intent could read the head just before that decide, and insert just after it, on a parent that is gone.
-- The route is locked, too: a row that is merely joined would be the one from before the wait.
SELECT d.head_version, d.next_row_id, d.next_row_index, d.row_count, d.status, d.drop_id, d.slug, d.iceberg_namespace, d.iceberg_table,
       d.digest_high, d.digest_low, d.expectations,
       r.epoch, r.mode, r.primary_arm, r.mirror_arm
FROM lakeward.datasets d JOIN lakeward.routes r ON r.dataset_id = d.id
WHERE d.id = :dataset_id FOR NO KEY UPDATE OF d FOR SHARE OF r;

-- name: dropped
-- What a writer is told whose dataset was dropped.
SELECT t.*, p.dropped_at, p.dropped_by, p.undo_until
FROM lakeward.tree t LEFT JOIN lakeward.drops p ON p.id = t.drop_id WHERE t.level = 'dataset' AND t.id = :dataset_id;

-- name: open
-- Intent, sent together with `lock_dataset` and after it, so that it sees what was committed before that had its lock.
-- Takes the dataset's open slot with a lease, if it is free and nobody who is still there came before. Where it can, there
-- is nothing for recovery: an abandoned transaction stays open until what it left is gone.
-- A version that is committed and not yet published keeps the slot: a next one would start from a snapshot that `main` is
-- not at yet, and take that for another engine's hand. Whoever waits publishes it. What adopts another engine's snapshot is
-- there because it can't be published; and nothing need wait where only an arm that does not serve afterwards can't be asked.
WITH opened AS (
    INSERT INTO lakeward.dataset_transactions
        (dataset_id, version, parent_version, kind, verb, arm, mirror_arm, build_id, pipeline, writer, route_epoch,
         fence, windows, fingerprint, actor)
    SELECT d.id, newest.version + 1, d.head_version, :kind, :verb, coalesce(:arm, r.primary_arm),
           CASE WHEN :kind = 'write' THEN r.mirror_arm END, :build_id, :pipeline,
           :writer, r.epoch, nextval('lakeward.fences'), CAST(:windows AS jsonb), :fingerprint, :actor
    FROM lakeward.datasets d JOIN lakeward.routes r ON r.dataset_id = d.id,
         (SELECT coalesce(max(t.version), 0) AS version FROM lakeward.dataset_transactions t
          WHERE t.dataset_id = :dataset_id) AS newest
    WHERE d.id = :dataset_id AND d.drop_id IS NULL AND (:kind = 'adopt' OR d.status <> 'diverged')
      AND (:kind = 'adopt' OR NOT EXISTS (
            SELECT 1 FROM lakeward.dataset_transactions t
            WHERE t.dataset_id = :dataset_id AND t.status = 'committed' AND t.published_at IS NULL)
           OR (:past_mirror AND EXISTS (
            SELECT 1 FROM lakeward.arm_versions a
            WHERE a.dataset_id = :dataset_id AND a.arm = coalesce(:serves, r.primary_arm)
              AND a.version = d.head_version
              AND a.snapshot_id IS NULL)))
      AND NOT EXISTS (SELECT 1 FROM lakeward.slot_waiters w
                      WHERE w.dataset_id = :dataset_id AND w.alive_until > clock_timestamp()
                        AND (CAST(:ticket AS bigint) IS NULL OR w.ticket < :ticket))
      -- A backfill does not keep the slot, but begins while nobody has it: what is open then could commit behind its back.
      -- A move has no backfill beside it, either: that one writes to the table under the name which it found.
      AND NOT (:kind IN ('backfill', 'move') AND EXISTS (
            SELECT 1 FROM lakeward.dataset_transactions t WHERE t.dataset_id = :dataset_id AND t.status = 'open'))
      -- Nothing else is brought to its arm meanwhile: each of the two would take the other one's rows for leftovers.
      AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions t
                      WHERE t.dataset_id = :dataset_id AND t.status = 'open' AND t.kind = 'backfill'
                        AND t.arm = CAST(:arm AS text))
    ON CONFLICT DO NOTHING
    RETURNING id, version, fence, opened_at
), left_line AS (
    -- In the same step: whoever is interrupted on the way out of the line would leave open what nobody knows of.
    DELETE FROM lakeward.slot_waiters w USING opened
    WHERE w.ticket = CAST(:ticket AS bigint)
       OR (w.dataset_id = :dataset_id AND w.alive_until < clock_timestamp() - interval '1 hour')
), leased AS (
    INSERT INTO lakeward.leases (transaction_id, fence, owner, lease_until)
    SELECT id, fence, CAST(:owner AS jsonb), clock_timestamp() + :lease_seconds * interval '1 second' FROM opened
)
SELECT id, version, fence, opened_at FROM opened;

-- name: newest_on_arm
-- What a write to the arm (none given: the route's primary) goes on from. Sent together with `open`. The newest version of
-- an arm is ended only when the arm is being emptied: its rows are gone, or about to go. Nothing goes on from a copy that
-- was not compared, but who brings something to its arm has to know of it.
SELECT a.version, a.base_version, a.snapshot_id, a.parent_snapshot_id, a.unproved_id AS unproved
FROM lakeward.arm_versions a
WHERE a.dataset_id = :dataset_id
  AND a.arm = coalesce(:arm, (SELECT r.primary_arm FROM lakeward.routes r WHERE r.dataset_id = :dataset_id))
  AND a.expired_at IS NULL
ORDER BY a.version DESC LIMIT 1;

-- name: newest_on_mirror
-- What the route's mirror holds, and whether a backfill is under way to it. Sent together with `open`.
SELECT r.mirror_arm AS arm, a.version, a.base_version, a.snapshot_id, a.parent_snapshot_id
FROM lakeward.routes r LEFT JOIN LATERAL (
    SELECT * FROM lakeward.readable_versions a
    WHERE a.dataset_id = r.dataset_id AND a.arm = r.mirror_arm
    ORDER BY a.version DESC LIMIT 1) AS a ON true
WHERE r.dataset_id = :dataset_id AND r.mirror_arm IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM lakeward.dataset_transactions t
                  WHERE t.dataset_id = :dataset_id AND t.status = 'open' AND t.kind = 'backfill');

-- name: renew
-- Heartbeat. A lease that ran out is not renewed: somebody may be taking it over right now.
WITH held AS (
    SELECT l.transaction_id
    FROM lakeward.leases l
    JOIN unnest(CAST(:ids AS bigint[]), CAST(:fences AS bigint[])) AS mine (id, fence)
      ON l.transaction_id = mine.id AND l.fence = mine.fence
    WHERE l.lease_until > clock_timestamp()
    ORDER BY l.transaction_id FOR UPDATE OF l
)
UPDATE lakeward.leases l SET lease_until = clock_timestamp() + :lease_seconds * interval '1 second'
FROM held WHERE l.transaction_id = held.transaction_id
RETURNING l.transaction_id;

-- name: hold
-- In each of a writer's own Postgres transactions: the ledger row can't be taken over while this one writes. A lease that
-- ran out stays so: its owner stops here, and leaves the row to recovery, which one chunk after the other would keep out.
-- The advisory lock says which session that is, for `end_writers`.
SELECT pg_advisory_xact_lock_shared(485178926, CAST(t.id % 2147483647 AS integer)) FROM lakeward.dataset_transactions t
WHERE t.id = :id AND t.status = 'open' AND t.fence = :fence
  AND EXISTS (SELECT 1 FROM lakeward.leases l WHERE l.transaction_id = t.id AND l.lease_until > clock_timestamp())
FOR SHARE OF t;

-- name: still_open
-- Before an owner removes what it prepared. Waits for its own decide, whose answer may have been lost on the way: that one
-- holds the row until it is committed or rolled back.
SELECT 1 FROM lakeward.dataset_transactions WHERE id = :id AND status = 'open' AND fence = :fence FOR SHARE;

-- name: lock_datasets
-- Decide's first step, since an intent takes the dataset first, too.
-- If this process is stopped before it is through, Postgres ends the session: everybody else would wait for it.
SELECT id, set_config('idle_in_transaction_session_timeout', '30s', true)
FROM lakeward.datasets WHERE id = ANY (CAST(:ids AS bigint[])) ORDER BY id FOR NO KEY UPDATE;

-- name: release
DELETE FROM lakeward.leases WHERE transaction_id = :id AND fence = :fence;

-- name: let_go
UPDATE lakeward.leases SET lease_until = clock_timestamp() WHERE transaction_id = :id AND fence = :fence;

-- name: lock_wait
-- For this transaction only. A stopped process can hold its row for ever; whoever wants to take over must not hang with it.
SELECT set_config('lock_timeout', CAST(:milliseconds AS text), true);

-- name: lock_open
-- Take-over's first step: waits for a chunk or a decide that the owner still has under way.
SELECT 1 FROM lakeward.dataset_transactions WHERE id = :id AND status = 'open' AND fence = :fence FOR NO KEY UPDATE;

-- name: end_writers
-- A process that was stopped, or lost its network, in the middle of a chunk holds its row until its session ends, which
-- Postgres may notice after hours. Its lease ran out, so it could not commit the chunk's rows anyway.
SELECT pg_terminate_backend(a.pid)
FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid AND a.datname = current_database()
WHERE l.locktype = 'advisory' AND l.classid = 485178926 AND l.objsubid = 2
  AND CAST(l.objid AS bigint) = CAST(:id AS bigint) % 2147483647
  AND a.pid <> pg_backend_pid() AND pg_has_role(a.usesysid, 'USAGE');

-- name: take_over
-- Recovery: the lease ran out, or its owner is proved dead. The fence rises in both rows, so that the old owner's
-- next chunk, heartbeat or decide is refused.
WITH taken AS (
    UPDATE lakeward.leases
    SET fence = nextval('lakeward.fences'), owner = CAST(:owner AS jsonb), acquired_at = clock_timestamp(),
        lease_until = clock_timestamp() + :lease_seconds * interval '1 second'
    WHERE transaction_id = :id AND fence = :fence AND (:dead OR lease_until <= clock_timestamp())
    RETURNING transaction_id, fence
)
UPDATE lakeward.dataset_transactions t SET fence = taken.fence
FROM taken WHERE t.id = taken.transaction_id AND t.status = 'open'
RETURNING t.fence, t.version;

-- name: abort
UPDATE lakeward.dataset_transactions SET status = 'aborted', ended_at = clock_timestamp(), error = :error
WHERE id = :id AND status = 'open' AND fence = :fence RETURNING id;

-- name: mark_published
UPDATE lakeward.dataset_transactions SET published_at = clock_timestamp()
WHERE id = :id AND status = 'committed' AND published_at IS NULL;

-- name: log_sync
INSERT INTO lakeward.iceberg_sync_log (dataset_id, version, event, namespace, table_name, snapshot_id)
VALUES (:dataset_id, :version, :event, CAST(:namespace AS text[]), :table_name, :snapshot_id);

-- name: unfinished
-- What recovery looks at: every open transaction, and every committed one whose publish is not recorded.
SELECT t.id, t.dataset_id, t.version, t.parent_version, t.kind, t.arm, t.mirror_arm, t.status, t.fence,
       l.fence AS lease_fence, l.owner, l.lease_until <= clock_timestamp() AS expired
FROM lakeward.dataset_transactions t LEFT JOIN lakeward.leases l ON l.transaction_id = t.id
WHERE (t.status = 'open' OR (t.status = 'committed' AND t.published_at IS NULL))
  AND (CAST(:dataset_id AS bigint) IS NULL OR t.dataset_id = :dataset_id)
ORDER BY t.dataset_id, t.version;

-- name: status_of
-- Waits for a decide that is still under way in the server after its client lost it: "open" must not turn into "committed".
SELECT status FROM lakeward.dataset_transactions WHERE id = :id FOR SHARE;

-- name: arm_version
-- The version that an arm serves for a reader: the given one, or the head. One that retention ended is served to nobody,
-- nor is a copy that was not compared.
SELECT a.version, a.base_version, a.snapshot_id, a.parent_snapshot_id
FROM lakeward.readable_versions a JOIN lakeward.datasets d ON d.id = a.dataset_id
WHERE a.dataset_id = :dataset_id AND a.arm = :arm AND a.version = coalesce(CAST(:version AS bigint), d.head_version);

-- name: newest_arm_version
SELECT version, base_version, snapshot_id, parent_snapshot_id, unproved_id AS unproved
FROM lakeward.arm_versions WHERE dataset_id = :dataset_id AND arm = :arm ORDER BY version DESC LIMIT 1;

-- name: freshness
-- The newest version that each arm holds and serves, by arm; one that is being emptied has none.
SELECT arm, max(version) AS version FROM lakeward.readable_versions
WHERE dataset_id = :dataset_id GROUP BY arm ORDER BY arm;

-- name: lag
-- How far an arm is behind: the versions that it has missed, and what they did. No row is counted. The newest version of
-- an arm is ended only when the arm is being emptied: such a one holds nothing that anybody could go on from. Of a copy
-- that was not compared yet, what was written since has been missed.
SELECT CAST(:arm AS text) AS arm, held.version AS holds, d.head_version AS head, missed.versions, missed.rows,
       last.mirror_error AS error, held.waits
FROM lakeward.datasets d
LEFT JOIN LATERAL (SELECT max(a.version) FILTER (WHERE a.unproved_id IS NULL) AS version,
                          max(a.version) FILTER (WHERE a.unproved_id IS NOT NULL) AS waits,
                          coalesce(max(a.version), 0) AS there
                   FROM lakeward.arm_versions a
                   WHERE a.dataset_id = d.id AND a.arm = :arm AND a.expired_at IS NULL) AS held ON true
LEFT JOIN LATERAL (
    SELECT count(*) AS versions,
           coalesce(sum(t.rows_added + t.rows_updated + t.rows_deleted), 0)::bigint AS rows
    FROM lakeward.dataset_transactions t
    WHERE t.dataset_id = d.id AND t.status = 'committed' AND t.version > held.there
      AND t.kind NOT IN ('backfill', 'mirror', 'route', 'move')) AS missed ON true
LEFT JOIN LATERAL (
    SELECT t.mirror_error FROM lakeward.dataset_transactions t
    WHERE t.dataset_id = d.id AND t.status = 'committed' AND t.mirror_arm = :arm AND t.version > held.there
    ORDER BY t.version LIMIT 1) AS last ON true
WHERE d.id = :dataset_id;

-- name: heads
-- In one statement, so that the versions are those of one instant.
SELECT id, head_version FROM lakeward.datasets WHERE id = ANY (CAST(:ids AS bigint[]));
