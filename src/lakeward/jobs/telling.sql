-- name: tell
-- Keep how far a job is, if it still runs here.
UPDATE lakeward.job_states SET progress = CAST(:progress AS jsonb), told_at = clock_timestamp()
WHERE job_id = :id AND owner = CAST(:owner AS jsonb);

-- name: lines
INSERT INTO lakeward.job_log (job_id, at, level, line)
SELECT :id, each.at, each.level, each.line
FROM unnest(CAST(:ats AS timestamptz[]), CAST(:levels AS text[]), CAST(:lines AS text[]))
     WITH ORDINALITY AS each (at, level, line, place)
WHERE EXISTS (SELECT FROM lakeward.job_states WHERE job_id = :id)
ORDER BY each.place;
