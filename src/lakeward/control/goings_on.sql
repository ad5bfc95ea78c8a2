-- name: newest
-- The newest numbers, from which on is looked.
SELECT coalesce((SELECT max(id) FROM lakeward.dataset_transactions), 0) AS transaction,
       coalesce((SELECT max(id) FROM lakeward.flip_events), 0) AS flip_event,
       coalesce((SELECT max(id) FROM lakeward.procrastinate_events), 0) AS job_event;

-- name: transactions
-- Those after a number, and those that were open before.
SELECT t.id, t.status, t.kind, t.verb, t.version, t.parent_version, t.arm, t.build_id, t.pipeline, t.writer, t.error,
       t.rows_added, t.rows_updated, t.rows_deleted, t.row_count,
       c.name AS catalog, s.name AS schema, d.name AS dataset, ARRAY[c.slug, s.slug, d.slug] AS slugs
FROM lakeward.dataset_transactions t
JOIN lakeward.datasets d ON d.id = t.dataset_id
JOIN lakeward.schemas s ON s.id = d.schema_id
JOIN lakeward.catalogs c ON c.id = s.catalog_id
WHERE t.id > :after OR t.id = ANY(CAST(:open AS bigint[]))
ORDER BY t.id LIMIT :most;

-- name: flip_events
SELECT e.id, e.at, e.stage, e.event, e.actor, e.seconds, f.to_arm,
       c.name AS catalog, s.name AS schema, d.name AS dataset, ARRAY[c.slug, s.slug, d.slug] AS slugs
FROM lakeward.flip_events e
JOIN lakeward.flips f ON f.id = e.flip_id
JOIN lakeward.datasets d ON d.id = f.dataset_id
JOIN lakeward.schemas s ON s.id = d.schema_id
JOIN lakeward.catalogs c ON c.id = s.catalog_id
WHERE e.id > :after
ORDER BY e.id LIMIT :most;

-- name: job_events
SELECT e.id, e.job_id AS job, e.at, e.type::text AS event, j.task_name AS kind, s.added_by, s.principal
FROM lakeward.procrastinate_events e
JOIN lakeward.procrastinate_jobs j ON j.id = e.job_id
JOIN lakeward.job_states s ON s.job_id = j.id
WHERE e.id > :after
ORDER BY e.id LIMIT :most;
