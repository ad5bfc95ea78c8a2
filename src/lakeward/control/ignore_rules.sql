-- name: put
INSERT INTO lakeward.ignore_rules (dataset_id, field_id, reason, owner, until)
VALUES (:dataset_id, :field_id, :reason, :owner, :until)
ON CONFLICT (dataset_id, field_id) DO UPDATE
SET reason = EXCLUDED.reason, owner = EXCLUDED.owner, until = EXCLUDED.until, at = clock_timestamp();

-- name: remove
DELETE FROM lakeward.ignore_rules WHERE dataset_id = :dataset_id AND field_id = :field_id RETURNING reason, owner, until;

-- name: before
SELECT reason, owner, until FROM lakeward.ignore_rules
WHERE dataset_id = :dataset_id AND field_id = :field_id FOR UPDATE;

-- name: of
SELECT field_id, reason, owner, until, until <= clock_timestamp() AS expired FROM lakeward.ignore_rules
WHERE dataset_id = :dataset_id ORDER BY field_id;
