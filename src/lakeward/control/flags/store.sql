-- name: all
SELECT f.kind, f.name, f.dataset_id, f.value, f.set_by, f.set_at FROM lakeward.flags f
ORDER BY f.kind, f.name, f.dataset_id NULLS FIRST;

-- name: set
INSERT INTO lakeward.flags (kind, name, dataset_id, value, set_by) VALUES (:kind, :name, :dataset_id, :value, :actor)
ON CONFLICT ON CONSTRAINT one_value DO UPDATE SET value = :value, set_by = :actor, set_at = clock_timestamp();

-- name: clear
DELETE FROM lakeward.flags
WHERE kind = :kind AND name = :name AND dataset_id IS NOT DISTINCT FROM CAST(:dataset_id AS bigint);

-- name: before
SELECT value FROM lakeward.flags
WHERE kind = :kind AND name = :name AND dataset_id IS NOT DISTINCT FROM CAST(:dataset_id AS bigint);

-- name: lock
-- Two who change one flag at once do it one after the other, so that the audit log has each step: also where there is no
-- row yet that could be locked. The lock ends with the transaction, so it works behind a pooler, too.
LOCK TABLE lakeward.flags IN SHARE ROW EXCLUSIVE MODE;

-- name: tell
-- Delivered when the transaction commits, to every session that listens.
SELECT pg_notify('lakeward_flags', '');
