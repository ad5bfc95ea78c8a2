-- name: put
WITH put AS (
    INSERT INTO lakeward.ignore_rules (dataset_id, field_id, reason, owner, until)
    VALUES (:dataset_id, :field_id, :reason, :owner, :until)
    ON CONFLICT (dataset_id, field_id) DO UPDATE
    SET reason = EXCLUDED.reason, owner = EXCLUDED.owner, until = EXCLUDED.until, at = clock_timestamp()
    RETURNING *
)
INSERT INTO lakeward.audit_log (actor, action, subject, after)
SELECT owner, 'parity.ignore', dataset_id || '/' || field_id, to_jsonb(put) FROM put RETURNING id;

-- name: remove
WITH gone AS (
    DELETE FROM lakeward.ignore_rules WHERE dataset_id = :dataset_id AND field_id = :field_id RETURNING *
)
INSERT INTO lakeward.audit_log (actor, action, subject, before)
SELECT :actor, 'parity.ignore.remove', dataset_id || '/' || field_id, to_jsonb(gone) FROM gone RETURNING id;

-- name: of
SELECT field_id, reason, owner, until, until <= clock_timestamp() AS expired FROM lakeward.ignore_rules
WHERE dataset_id = :dataset_id ORDER BY field_id;
