-- name: begin
INSERT INTO lakeward.flips (dataset_id, to_arm, started_by) VALUES (:dataset_id, :to_arm, :actor)
ON CONFLICT DO NOTHING RETURNING id;

-- name: active
SELECT f.*, f.lease_until > clock_timestamp() AS held FROM lakeward.flips f
WHERE f.dataset_id = :dataset_id AND f.ended_at IS NULL;

-- name: newest
SELECT f.*, f.lease_until > clock_timestamp() AS held FROM lakeward.flips f
WHERE f.dataset_id = :dataset_id ORDER BY f.id DESC LIMIT 1;

-- name: all
SELECT f.*, f.lease_until > clock_timestamp() AS held FROM lakeward.flips f
WHERE :ended OR f.ended_at IS NULL ORDER BY f.id DESC LIMIT :most;

-- name: claim
-- One process at a time works on a flip. A lease that ran out, or whose owner is proved dead, is taken over.
UPDATE lakeward.flips
SET owner = CAST(:owner AS jsonb), fence = fence + 1,
    lease_until = clock_timestamp() + :lease_seconds * interval '1 second'
WHERE id = :id AND ended_at IS NULL AND fence = :fence AND (:dead OR coalesce(lease_until <= clock_timestamp(), true))
RETURNING fence;

-- name: renew
UPDATE lakeward.flips SET lease_until = clock_timestamp() + :lease_seconds * interval '1 second'
WHERE id = :id AND fence = :fence AND lease_until > clock_timestamp() RETURNING id;

-- name: release
UPDATE lakeward.flips SET owner = NULL, lease_until = NULL WHERE id = :id AND fence = :fence;

-- name: end
UPDATE lakeward.flips SET ended_at = clock_timestamp(), outcome = :outcome WHERE id = :id AND ended_at IS NULL
RETURNING id;

-- name: note
INSERT INTO lakeward.flip_events (flip_id, stage, event, actor, seconds, details)
VALUES (:flip_id, :stage, :event, :actor, :seconds, CAST(:details AS jsonb));

-- name: events
SELECT at, stage, event, actor, seconds, details FROM lakeward.flip_events WHERE flip_id = :flip_id ORDER BY id;

-- name: measured
SELECT CAST(e.details ->> 'bytes' AS bigint) AS bytes, e.seconds FROM lakeward.flip_events e
JOIN lakeward.flips f ON f.id = e.flip_id
WHERE e.stage = 'backfill' AND e.event = 'done' AND f.to_arm = :to_arm AND e.details ? 'bytes'
  AND CAST(e.details ->> 'rows' AS bigint) >= :rows
ORDER BY e.id DESC LIMIT :most;

-- name: writers
SELECT DISTINCT writer FROM lakeward.dataset_transactions
WHERE dataset_id = :dataset_id AND status = 'committed' AND kind = 'write' ORDER BY writer;

-- name: adopted
SELECT EXISTS (SELECT 1 FROM lakeward.dataset_transactions
               WHERE dataset_id = :dataset_id AND status = 'committed' AND kind = 'adopt') AS adopted;
