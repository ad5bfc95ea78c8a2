-- name: record
INSERT INTO lakeward.parity_checks (dataset_id, version, kind, equal, rows, details)
VALUES (:dataset_id, :version, :kind, :equal, :rows, CAST(:details AS jsonb)) RETURNING id;

-- name: newest
SELECT id, at, version, kind, equal, rows, details FROM lakeward.parity_checks
WHERE dataset_id = :dataset_id AND (CAST(:kind AS text) IS NULL OR kind = :kind)
ORDER BY id DESC LIMIT :most;

-- name: seconds_since
SELECT extract(epoch FROM clock_timestamp() - max(at)) AS seconds FROM lakeward.parity_checks
WHERE dataset_id = :dataset_id AND kind = :kind;

-- name: mismatch
-- The newest finding that the arms differ, unless a later comparison of all rows found them equal.
SELECT m.id, m.at, m.version, m.kind, m.equal, m.rows, m.details FROM lakeward.parity_checks m
WHERE m.dataset_id = :dataset_id AND NOT m.equal
  AND NOT EXISTS (SELECT 1 FROM lakeward.parity_checks f
                  WHERE f.dataset_id = :dataset_id AND f.kind = 'full' AND f.equal AND f.id > m.id)
ORDER BY m.id DESC LIMIT 1;
