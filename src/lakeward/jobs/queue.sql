-- name: jobs
-- Jobs, newest first, with what is kept of each besides its place in the queue.
SELECT j.id, j.task_name AS kind, j.args, j.queue_name AS queue, j.status::text AS status, j.queueing_lock AS key, j.lock,
       CASE WHEN j.status = 'todo' AND j.scheduled_at > clock_timestamp() THEN j.scheduled_at END AS run_at, j.attempts AS tries, j.abort_requested,
       e.added_at, e.started_at, CASE WHEN j.status NOT IN ('todo', 'doing') THEN e.ended_at END AS ended_at,
       s.added_by, s.principal, s.owner, s.progress, s.result, s.error
FROM lakeward.procrastinate_jobs j
JOIN lakeward.job_states s ON s.job_id = j.id
CROSS JOIN LATERAL (
    SELECT min(at) FILTER (WHERE type = 'deferred') AS added_at,
           max(at) FILTER (WHERE type = 'started') AS started_at,
           max(at) FILTER (WHERE type IN ('succeeded', 'failed', 'cancelled', 'aborted')) AS ended_at
    FROM lakeward.procrastinate_events WHERE job_id = j.id
) e
WHERE (CAST(:id AS bigint) IS NULL OR j.id = :id)
  AND (CAST(:before AS bigint) IS NULL OR j.id < :before)
  AND (CAST(:kind AS text) IS NULL OR j.task_name = :kind)
  AND (CAST(:by AS text) IS NULL OR s.added_by = :by)
  AND (CAST(:principal AS text) IS NULL OR s.principal = :principal)
  AND (CAST(:statuses AS text[]) IS NULL OR j.status::text = ANY(:statuses))
ORDER BY j.id DESC
LIMIT :most;

-- name: waiting
-- The job with a key that waits.
SELECT id FROM lakeward.procrastinate_jobs WHERE queueing_lock = :key AND status = 'todo';

-- name: note
INSERT INTO lakeward.job_states (job_id, added_by, principal, token) VALUES (:id, :by, :principal, :token);

-- name: log
-- Lines of a job's log after one of them.
SELECT id, at, level, line FROM lakeward.job_log
WHERE job_id = :id AND id > :after
ORDER BY id
LIMIT :most;

-- name: wake
-- Let workers look for jobs. Those that are inserted tell of themselves; what becomes due or is given back does not.
SELECT pg_notify('procrastinate_any_queue_v1', :message);

-- name: again
-- Begin a job that has ended anew, as if it had never run. Their own, people begin by the token that they come with now.
UPDATE lakeward.job_states
SET owner = NULL, failures = 0, deaths = 0, progress = NULL, result = NULL, error = NULL,
    token = CASE WHEN principal = :principal THEN :token ELSE token END
WHERE job_id = :id;

-- name: lock
SELECT status::text AS status FROM lakeward.procrastinate_jobs WHERE id = :id FOR UPDATE;

-- name: requeue
-- What `retry` of procrastinate does for a failed job, also for one that was cancelled.
UPDATE lakeward.procrastinate_jobs
SET status = 'todo', scheduled_at = NULL, priority = 0, abort_requested = false, worker_id = NULL
WHERE id = :id;

-- name: counts
-- How many jobs there are of each kind and status.
SELECT task_name AS kind, status::text AS status, count(*) AS jobs
FROM lakeward.procrastinate_jobs
GROUP BY task_name, status;

-- name: forget
-- Remove jobs that ended long ago, with all that is kept of them.
DELETE FROM lakeward.procrastinate_jobs j
WHERE j.status NOT IN ('todo', 'doing')
  AND NOT EXISTS (
      SELECT FROM lakeward.procrastinate_events e
      WHERE e.job_id = j.id AND e.at > clock_timestamp() - CAST(:days AS double precision) * interval '1 day'
  );
