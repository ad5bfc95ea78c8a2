-- name: begin
-- Take note of who runs a job now. What a try before this one has left says that only its end was not told.
UPDATE lakeward.job_states SET owner = CAST(:owner AS jsonb), progress = NULL, told_at = clock_timestamp()
WHERE job_id = :id
RETURNING principal, token, added_by, result, failures;

-- name: succeeded
UPDATE lakeward.job_states SET result = CAST(:document AS jsonb), error = NULL, told_at = clock_timestamp()
WHERE job_id = :id AND owner = CAST(:owner AS jsonb);

-- name: failed
UPDATE lakeward.job_states
SET error = CAST(:document AS jsonb), failures = failures + CAST(:counted AS integer), told_at = clock_timestamp()
WHERE job_id = :id AND owner = CAST(:owner AS jsonb)
RETURNING failures;
