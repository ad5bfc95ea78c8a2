-- name: standing
-- How the workspace stands, in one question that reads no rows of datasets. A live dataset is behind if its mirror does
-- not hold its head, and stale if a write came to a source after what it read of it; copies change no row.
WITH live AS (
    SELECT d.id, d.head_version, d.status, r.mirror_arm,
           (r.mirror_arm IS NOT NULL AND d.head_version > 0 AND NOT EXISTS (
               SELECT 1 FROM lakeward.readable_versions a
               WHERE a.dataset_id = d.id AND a.arm = r.mirror_arm AND a.version = d.head_version)) AS behind,
           EXISTS (
               SELECT 1 FROM lakeward.watermarks w JOIN lakeward.datasets s ON s.id = w.source_id
               WHERE w.dataset_id = d.id AND s.drop_id IS NULL AND s.head_version > w.version AND EXISTS (
                   SELECT 1 FROM lakeward.dataset_transactions t
                   WHERE t.dataset_id = s.id AND t.version > w.version AND t.status = 'committed'
                     AND (t.kind = 'write' OR t.verb IN ('adopt', 'renumber')))) AS stale
    FROM lakeward.datasets d LEFT JOIN lakeward.routes r ON r.dataset_id = d.id
    WHERE d.drop_id IS NULL
)
SELECT (SELECT count(*) FROM live) AS datasets,
       (SELECT count(*) FROM live WHERE status = 'diverged') AS diverged,
       (SELECT count(*) FROM live WHERE behind) AS behind,
       (SELECT count(*) FROM live WHERE stale) AS stale,
       (SELECT count(*) FROM lakeward.dataset_transactions WHERE status = 'open') AS open,
       (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(opened_at)), 0)::double precision
        FROM lakeward.dataset_transactions WHERE status = 'open') AS oldest_open_seconds,
       (SELECT count(*) FROM lakeward.dataset_transactions t LEFT JOIN lakeward.leases l ON l.transaction_id = t.id
        WHERE t.status = 'open' AND coalesce(l.lease_until <= clock_timestamp(), true)) AS abandoned,
       (SELECT count(*) FROM lakeward.dataset_transactions
        WHERE status = 'committed' AND published_at IS NULL) AS unpublished,
       (SELECT count(*) FROM lakeward.flips WHERE ended_at IS NULL) AS flips;

-- name: clock
-- What the database's clock says, and which migration its tables are at.
SELECT clock_timestamp() AS now, (SELECT version_num FROM lakeward.alembic_version) AS revision;

-- name: connection
-- How this client is connected: a pooler between shows by a port that is not the one that the server listens on.
SELECT current_setting('server_version') AS version, inet_server_port() AS port,
       (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database()) AS connections,
       current_setting('max_connections')::integer AS most, pg_catalog.pg_database_size(current_database()) AS bytes,
       (SELECT version_num FROM lakeward.alembic_version) AS revision;

-- name: workers
-- Workers of jobs that were heard of lately, how many jobs wait that could run, and since when the first of them does.
SELECT (SELECT count(*) FROM lakeward.procrastinate_workers
        WHERE last_heartbeat > clock_timestamp() - interval '1 minute') AS alive,
       count(*) AS waiting
FROM lakeward.procrastinate_jobs
WHERE status = 'todo' AND coalesce(scheduled_at, clock_timestamp()) <= clock_timestamp();
