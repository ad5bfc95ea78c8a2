-- name: of
SELECT expectations FROM lakeward.datasets WHERE id = :dataset_id;

-- name: put
-- Nothing is written down where nothing changes.
WITH before AS (
    SELECT expectations FROM lakeward.datasets WHERE id = :dataset_id
), put AS (
    UPDATE lakeward.datasets SET expectations = CAST(:expectations AS jsonb)
    WHERE id = :dataset_id AND expectations IS DISTINCT FROM CAST(:expectations AS jsonb)
    RETURNING expectations
)
INSERT INTO lakeward.audit_log (actor, action, subject, before, after)
SELECT :actor, 'dataset.expect', :dataset, before.expectations, put.expectations FROM before, put RETURNING id;
