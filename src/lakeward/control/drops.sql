-- Whoever locks several of these takes them in this order: catalogs, schemas, datasets, each by ascending id, then what
-- ledger.sql says. Who makes something in a parent holds that FOR SHARE, so that it is not dropped meanwhile.

-- name: lock_catalogs
SELECT id FROM lakeward.catalogs WHERE id = ANY (CAST(:ids AS bigint[])) ORDER BY id FOR UPDATE;

-- name: lock_schemas
SELECT s.id FROM lakeward.schemas s
WHERE s.id = ANY (CAST(:ids AS bigint[])) OR (s.catalog_id = CAST(:catalog AS bigint) AND s.purged_at IS NULL)
ORDER BY s.id FOR UPDATE;

-- name: lock_datasets
-- If this process is stopped before it is through, Postgres ends the session: everybody else would wait for it.
SELECT id, set_config('idle_in_transaction_session_timeout', '30s', true)
FROM lakeward.datasets WHERE id = ANY (CAST(:ids AS bigint[])) ORDER BY id FOR UPDATE;

-- name: below
-- The live datasets of an object, as they are now that its parents are locked.
SELECT t.id FROM lakeward.tree t
WHERE t.level = 'dataset' AND t.ids[:depth] = :id AND t.drop_id IS NULL ORDER BY t.id;

-- name: blockers
-- What keeps datasets from being dropped although nobody writes them: a flip that goes on, or a backfill.
SELECT d.id, f.id IS NOT NULL AS flipping, b.id IS NOT NULL AS backfilling
FROM lakeward.datasets d
LEFT JOIN lakeward.flips f ON f.dataset_id = d.id AND f.ended_at IS NULL
LEFT JOIN lakeward.dataset_transactions b ON b.dataset_id = d.id AND b.status = 'open' AND b.kind = 'backfill'
WHERE d.id = ANY (CAST(:ids AS bigint[])) AND (f.id IS NOT NULL OR b.id IS NOT NULL) ORDER BY d.id;

-- name: settle
-- Ends the transactions that hold the datasets' slots; one that is missing was taken over. They make no version.
UPDATE lakeward.dataset_transactions t
SET status = 'committed', committed_at = now(), ended_at = now(), published_at = now(),
    rows_in = d.row_count, rows_added = 0, rows_updated = 0, rows_unchanged = d.row_count, rows_deleted = 0,
    rows_skipped = 0, row_count = d.row_count, digest_high = d.digest_high, digest_low = d.digest_low
FROM unnest(CAST(:transactions AS bigint[]), CAST(:fences AS bigint[])) AS mine (id, fence), lakeward.datasets d,
     lakeward.leases l
WHERE t.id = mine.id AND t.fence = mine.fence AND t.status = 'open' AND d.id = t.dataset_id AND d.drop_id IS NULL
  AND l.transaction_id = t.id AND l.fence = mine.fence AND l.lease_until > clock_timestamp()
RETURNING t.id;

-- name: release
DELETE FROM lakeward.leases WHERE transaction_id = ANY (CAST(:transactions AS bigint[]));

-- name: begin
INSERT INTO lakeward.drops (level, dropped_by, undo_until)
VALUES (:level, :actor, clock_timestamp() + CAST(:days AS float8) * interval '1 day') RETURNING id, dropped_at, undo_until;

-- name: mark
-- The object and what is live in it. Waiters in the line of a dataset find it dropped when it is their turn.
WITH live AS (
    SELECT t.level, t.id FROM lakeward.tree t WHERE t.ids[:depth] = :id AND cardinality(t.ids) >= :depth AND t.drop_id IS NULL
), catalogs AS (
    UPDATE lakeward.catalogs SET drop_id = :drop_id FROM live
    WHERE live.level = 'catalog' AND live.id = catalogs.id RETURNING 1
), schemas AS (
    UPDATE lakeward.schemas SET drop_id = :drop_id FROM live
    WHERE live.level = 'schema' AND live.id = schemas.id RETURNING 1
), datasets AS (
    UPDATE lakeward.datasets SET drop_id = :drop_id FROM live
    WHERE live.level = 'dataset' AND live.id = datasets.id RETURNING 1
)
SELECT (SELECT count(*) FROM catalogs) + (SELECT count(*) FROM schemas) + (SELECT count(*) FROM datasets) AS marked;

-- name: together
-- What was dropped in the same step, in an object or being it, and what of it can't come back.
SELECT t.level, t.id, t.path, t.purged_at IS NOT NULL OR u.dataset_id IS NOT NULL AS lost
FROM lakeward.tree t LEFT JOIN lakeward.purges u ON t.level = 'dataset' AND u.dataset_id = t.id
WHERE t.drop_id = :drop_id AND t.ids[:depth] = :id AND cardinality(t.ids) >= :depth ORDER BY t.level, t.id;

-- name: return_catalogs
UPDATE lakeward.catalogs SET drop_id = NULL, name = CASE WHEN id = CAST(:renamed AS bigint) THEN :name ELSE name END
WHERE id = ANY (CAST(:ids AS bigint[])) AND purged_at IS NULL;

-- name: return_schemas
UPDATE lakeward.schemas SET drop_id = NULL, name = CASE WHEN id = CAST(:renamed AS bigint) THEN :name ELSE name END
WHERE id = ANY (CAST(:ids AS bigint[])) AND purged_at IS NULL;

-- name: return_datasets
UPDATE lakeward.datasets SET drop_id = NULL, name = CASE WHEN id = CAST(:renamed AS bigint) THEN :name ELSE name END
WHERE id = ANY (CAST(:ids AS bigint[])) AND purged_at IS NULL;

-- name: dropped_parents
-- The parents of an object that are dropped, too: those come back with it.
SELECT t.level, t.id, t.path, t.purged_at IS NOT NULL AS lost FROM lakeward.tree t
WHERE ((t.level = 'catalog' AND t.id = CAST(:catalog AS bigint)) OR (t.level = 'schema' AND t.id = CAST(:schema AS bigint)))
  AND t.drop_id IS NOT NULL ORDER BY t.level;
