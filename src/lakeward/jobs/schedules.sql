-- name: now
SELECT clock_timestamp() AS now;

-- name: known
SELECT name, schedule, ticked_at FROM lakeward.job_schedules;

-- name: learn
-- A schedule that is new, or was changed, begins with its next time.
INSERT INTO lakeward.job_schedules (name, schedule, ticked_at) VALUES (:name, :schedule, :tick)
ON CONFLICT (name) DO UPDATE SET schedule = excluded.schedule, ticked_at = excluded.ticked_at
WHERE lakeward.job_schedules.schedule <> excluded.schedule;

-- name: tick
-- Whoever gets a row here queues the job, in the same transaction; for all others this time has been.
UPDATE lakeward.job_schedules SET ticked_at = :tick
WHERE name = :name AND schedule = :schedule AND ticked_at < :tick
RETURNING name;

-- name: forget
DELETE FROM lakeward.job_schedules WHERE name = ANY(:names);

-- name: first
INSERT INTO lakeward.job_schedules (name, schedule) VALUES (:name, '') ON CONFLICT (name) DO NOTHING;

-- name: seen
-- Whoever gets a row here looks what is to be built, in the same transaction.
UPDATE lakeward.job_schedules SET seen = :state
WHERE name = :name AND seen IS DISTINCT FROM :state
RETURNING name;
