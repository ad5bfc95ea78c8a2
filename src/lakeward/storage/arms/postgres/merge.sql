-- A keyed write's statements, all in one transaction of which the two temporary tables are a part. Of the input's rows,
-- `lakeward_staged` has the documents and `lakeward_plan` what becomes of them; it is narrow, and is sorted in their place.

-- name: begin
-- For this transaction only, so that it works behind a pooler. Nothing is known of the temporary tables' contents, and a
-- guess at them must not become a loop over one for each row of the other.
SET LOCAL enable_nestloop = off;
SET LOCAL jit = off;
SET LOCAL work_mem = '32MB';

-- name: stage
CREATE TEMPORARY TABLE lakeward_staged (
    position bigint NOT NULL,
    removes boolean NOT NULL,
    key bigint NOT NULL,
    hash text,
    data jsonb NOT NULL
) ON COMMIT DROP;

-- name: unnumbered
-- Whether rows of the parent version may be of before there were key numbers.
SELECT unnumbered_to >= :base AS unnumbered FROM lakeward.datasets WHERE id = :dataset_id;

-- name: numbered
UPDATE lakeward.datasets SET unnumbered_to = 0 WHERE id = :dataset_id;

-- name: outcome
SELECT count(*), count(*) FILTER (WHERE action = 'add'), count(*) FILTER (WHERE action = 'update'),
       count(*) FILTER (WHERE action = 'keep'), count(*) FILTER (WHERE action = 'delete'),
       count(*) FILTER (WHERE action = 'skip'),
       coalesce(sum(('x' || left(new_hash, 16))::bit(64)::bigint) FILTER (WHERE action IN ('add', 'update')), 0),
       coalesce(sum(('x' || right(new_hash, 16))::bit(64)::bigint) FILTER (WHERE action IN ('add', 'update')), 0),
       coalesce(sum(('x' || left(old_hash, 16))::bit(64)::bigint) FILTER (WHERE action IN ('update', 'delete')), 0),
       coalesce(sum(('x' || right(old_hash, 16))::bit(64)::bigint) FILTER (WHERE action IN ('update', 'delete')), 0)
FROM pg_temp.lakeward_plan;

-- name: ambiguous
SELECT position FROM pg_temp.lakeward_plan GROUP BY position HAVING count(*) > 1;

-- name: mark
UPDATE lakeward.dataset_rows SET until = :version
WHERE ctid = ANY (ARRAY(SELECT place FROM pg_temp.lakeward_plan WHERE action IN ('update', 'delete')))
  AND dataset_id = :dataset_id AND until IS NULL;

-- name: insert
INSERT INTO lakeward.dataset_rows (dataset_id, row_id, row_index, version, created_at, key, data)
SELECT :dataset_id, coalesce(plan.row_id, :next_row_id + plan.number),
       coalesce(plan.row_index, :next_row_index + plan.number), :version,
       coalesce(plan.created_at, :opened_at), staged.key, staged.data
FROM pg_temp.lakeward_staged AS staged JOIN (
    SELECT position, row_id, row_index, created_at,
           row_number() OVER (PARTITION BY action ORDER BY position) - 1 AS number
    FROM pg_temp.lakeward_plan WHERE action IN ('add', 'update')
) AS plan USING (position);
