-- name: record
INSERT INTO lakeward.parity_checks (dataset_id, version, kind, equal, rows, details)
VALUES (:dataset_id, :version, :kind, :equal, :rows, CAST(:details AS jsonb)) RETURNING id;

-- name: newest
SELECT id, at, version, kind, equal, rows, details FROM lakeward.parity_checks
WHERE dataset_id = :dataset_id AND (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND (CAST(:before AS bigint) IS NULL OR id < :before)
ORDER BY id DESC LIMIT :most;

-- name: seconds_since
SELECT extract(epoch FROM clock_timestamp() - max(at)) AS seconds FROM lakeward.parity_checks
WHERE dataset_id = :dataset_id AND kind = :kind;

-- name: tally
-- What was found since a moment: reads that could be compared, findings of any kind that the arms differ, and the median
-- of the seconds that those reads took on two arms.
WITH found AS (
    SELECT kind = 'read' AND equal IS NOT NULL AS is_read, equal,
           CAST(details #>> ARRAY['arms', CAST(:first AS text), 'seconds'] AS float8) AS first_took,
           CAST(details #>> ARRAY['arms', CAST(:second AS text), 'seconds'] AS float8) AS second_took
    FROM lakeward.parity_checks WHERE dataset_id = :dataset_id AND at >= CAST(:since AS timestamptz)
)
SELECT count(*) FILTER (WHERE is_read) AS reads, count(*) FILTER (WHERE NOT equal) AS mismatches,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY first_took) FILTER (WHERE is_read) AS first_seconds,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY second_took) FILTER (WHERE is_read) AS second_seconds,
       CAST(extract(epoch FROM clock_timestamp() - CAST(:since AS timestamptz)) AS float8) AS elapsed
FROM found;

-- name: mismatch
-- The newest finding that the arms differ, unless a later comparison of all rows found them equal.
SELECT m.id, m.at, m.version, m.kind, m.equal, m.rows, m.details FROM lakeward.parity_checks m
WHERE m.dataset_id = :dataset_id AND NOT m.equal
  AND NOT EXISTS (SELECT 1 FROM lakeward.parity_checks f
                  WHERE f.dataset_id = :dataset_id AND f.kind = 'full' AND f.equal AND f.id > m.id)
ORDER BY m.id DESC LIMIT 1;

-- name: prune
-- Removes some of the findings that are neither among the newest of their kind, nor younger than the grace, nor
-- differences that still stand: those after which no comparison of all rows has found the arms equal. Says how many there
-- are of them, and how many it has removed.
WITH cut AS (
    SELECT each.kind, (SELECT p.id FROM lakeward.parity_checks p
                       WHERE p.dataset_id = :dataset_id AND p.kind = each.kind
                       ORDER BY p.id DESC OFFSET CAST(:keep AS bigint) - 1 LIMIT 1) AS oldest
    FROM (VALUES ('write'), ('read'), ('full')) AS each (kind)
), settled AS (
    SELECT max(id) AS id FROM lakeward.parity_checks WHERE dataset_id = :dataset_id AND kind = 'full' AND equal
), outdated AS (
    SELECT p.id FROM lakeward.parity_checks p JOIN cut ON cut.kind = p.kind AND p.id < cut.oldest CROSS JOIN settled
    WHERE p.dataset_id = :dataset_id AND p.at < clock_timestamp() - CAST(:grace_seconds AS float8) * interval '1 second'
      AND (p.equal IS DISTINCT FROM false OR p.id < settled.id)
), gone AS (
    DELETE FROM lakeward.parity_checks WHERE id IN (SELECT id FROM outdated LIMIT :most) RETURNING 1
)
SELECT (SELECT count(*) FROM outdated) AS outdated, (SELECT count(*) FROM gone) AS gone;
