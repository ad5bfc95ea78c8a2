-- name: add
-- In the order of the key, so that two processes can't wait for each other in a circle.
INSERT INTO lakeward.counters AS c (day, dataset_id, name, value)
SELECT CAST(clock_timestamp() AT TIME ZONE 'UTC' AS date), new.dataset_id, new.name, new.value
FROM unnest(CAST(:datasets AS bigint[]), CAST(:names AS text[]), CAST(:counts AS bigint[])) AS new (dataset_id, name, value)
ORDER BY new.dataset_id, new.name
ON CONFLICT (day, dataset_id, name) DO UPDATE SET value = c.value + excluded.value;

-- name: counted
-- Of the last days, this one included.
SELECT dataset_id, name, CAST(sum(value) AS bigint) AS value FROM lakeward.counters
WHERE day > CAST(clock_timestamp() AT TIME ZONE 'UTC' AS date) - CAST(:days AS integer)
GROUP BY dataset_id, name ORDER BY name, dataset_id;

-- name: forget
DELETE FROM lakeward.counters WHERE day <= CAST(clock_timestamp() AT TIME ZONE 'UTC' AS date) - CAST(:days AS integer)
RETURNING 1;
