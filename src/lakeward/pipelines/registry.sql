-- name: applied
SELECT name, spec, fingerprint, applied_at, applied_by
FROM lakeward.pipelines
ORDER BY name COLLATE "C"

-- name: schedules
-- When applied pipelines are to be built, of those that say so.
SELECT name, spec ->> 'schedule' AS schedule FROM lakeward.pipelines WHERE spec ->> 'schedule' IS NOT NULL

-- name: store
INSERT INTO lakeward.pipelines (name, spec, fingerprint, applied_by)
VALUES (:name, CAST(:spec AS jsonb), :fingerprint, :actor)
ON CONFLICT (name) DO UPDATE
SET spec = excluded.spec, fingerprint = excluded.fingerprint, applied_by = excluded.applied_by,
    applied_at = clock_timestamp()

-- name: before
-- What the audit log says was there.
SELECT spec FROM lakeward.pipelines WHERE name = :name FOR UPDATE;

-- name: remove
DELETE FROM lakeward.pipelines
WHERE name = :name

-- name: state
-- What could make a build necessary, in one row: the head of every dataset that was ever written with the number of models
-- that were added by hand (those that builds make come with a head), and what is applied.
SELECT (SELECT coalesce(md5(string_agg(id || ':' || head_version, ',' ORDER BY id)), '')
        FROM lakeward.datasets WHERE head_version > 0)
       || (SELECT count(*) FROM lakeward.models WHERE build_id IS NULL) AS heads,
       (SELECT coalesce(md5(string_agg(name || ':' || fingerprint || ':' || spec, ',' ORDER BY name)), '')
        FROM lakeward.pipelines) AS applied;
