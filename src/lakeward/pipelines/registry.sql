-- name: applied
SELECT name, spec, fingerprint, applied_at, applied_by
FROM lakeward.pipelines
ORDER BY name COLLATE "C"

-- name: store
INSERT INTO lakeward.pipelines (name, spec, fingerprint, applied_by)
VALUES (:name, CAST(:spec AS jsonb), :fingerprint, :actor)
ON CONFLICT (name) DO UPDATE
SET spec = excluded.spec, fingerprint = excluded.fingerprint, applied_by = excluded.applied_by,
    applied_at = clock_timestamp()

-- name: remove
DELETE FROM lakeward.pipelines
WHERE name = :name

-- name: audit
INSERT INTO lakeward.audit_log (actor, action, subject, before, after)
VALUES (:actor, :action, :subject, CAST(:before AS jsonb), CAST(:after AS jsonb))
