-- name: of
SELECT expectations FROM lakeward.datasets WHERE id = :dataset_id;

-- name: put
-- Nothing is written down where nothing changes.
UPDATE lakeward.datasets d SET expectations = CAST(:expectations AS jsonb)
FROM (SELECT id, expectations FROM lakeward.datasets WHERE id = :dataset_id FOR NO KEY UPDATE) AS before
WHERE d.id = before.id AND d.expectations IS DISTINCT FROM CAST(:expectations AS jsonb)
RETURNING before.expectations;
