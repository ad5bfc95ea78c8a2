-- name: running
-- Jobs that are being run, by whom, and whether their worker has been silent for too long.
SELECT j.id, j.worker_id, s.owner, s.deaths, j.abort_requested,
       j.worker_id IS NULL OR w.last_heartbeat < clock_timestamp() - :seconds * interval '1 second' AS silent
FROM lakeward.procrastinate_jobs j
LEFT JOIN lakeward.job_states s ON s.job_id = j.id
LEFT JOIN lakeward.procrastinate_workers w ON w.id = j.worker_id
WHERE j.status = 'doing'
ORDER BY j.id;

-- name: hold
-- One of those that look takes it: whoever comes later finds it in other hands.
SELECT true FROM lakeward.procrastinate_jobs
WHERE id = :id AND status = 'doing' AND worker_id IS NOT DISTINCT FROM CAST(:worker AS bigint)
FOR UPDATE;

-- name: died
UPDATE lakeward.job_states SET deaths = deaths + 1, owner = NULL, error = CAST(:error AS jsonb) WHERE job_id = :id;

-- name: give_back
SELECT lakeward.procrastinate_retry_job_v2(:id, NULL, 0, NULL, NULL);

-- name: give_up
SELECT lakeward.procrastinate_finish_job_v1(:id, CAST(:status AS lakeward.procrastinate_job_status), false);

-- name: line
INSERT INTO lakeward.job_log (job_id, level, line) VALUES (:id, 'warning', :line);

-- name: due
-- What waited for its time comes among the others, and workers are told.
UPDATE lakeward.procrastinate_jobs SET priority = 0
WHERE status = 'todo' AND priority < 0 AND scheduled_at <= clock_timestamp()
RETURNING id;
