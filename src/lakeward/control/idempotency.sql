-- name: remembered
-- What came of the requests that had these keys. A key whose time is over is free, whether or not it is still there; and a
-- dropped dataset answers nobody.
SELECT k.* FROM unnest(CAST(:dataset_ids AS bigint[]), CAST(:keys AS text[])) AS asked (dataset_id, key)
JOIN lakeward.idempotency_keys k ON k.dataset_id = asked.dataset_id AND k.key = asked.key
JOIN lakeward.datasets d ON d.id = k.dataset_id
WHERE d.drop_id IS NULL AND k.keep_until > now();

-- name: outdate
-- Decide, before `remember`: the same key of a request whose time is over. Nobody else writes to the dataset meanwhile.
DELETE FROM lakeward.idempotency_keys WHERE dataset_id = :dataset_id AND key = :key AND keep_until <= now();

-- name: remember
-- Decide, with the rows.
INSERT INTO lakeward.idempotency_keys
    (dataset_id, key, build_id, verb, writer, rows_count, rows_high, rows_low, result, keep_until)
VALUES (:dataset_id, :key, :build_id, :verb, :writer, :rows_count, :rows_high, :rows_low, CAST(:result AS jsonb),
        now() + CAST(:days AS float8) * interval '1 day');

-- name: outdated
SELECT dataset_id, count(*) AS keys FROM lakeward.idempotency_keys
WHERE dataset_id = ANY (CAST(:dataset_ids AS bigint[])) AND keep_until <= now() GROUP BY dataset_id;

-- name: forget
WITH gone AS (
    DELETE FROM lakeward.idempotency_keys
    WHERE dataset_id = ANY (CAST(:dataset_ids AS bigint[])) AND keep_until <= now() RETURNING dataset_id)
SELECT dataset_id, count(*) AS keys FROM gone GROUP BY dataset_id;
