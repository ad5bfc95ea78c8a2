-- name: lock
-- Whoever changes a grant waits for others who do: of two that take away the last two admins, one sees that it is the last.
LOCK TABLE lakeward.grants IN SHARE ROW EXCLUSIVE MODE;

-- name: role
SELECT role FROM lakeward.grants
WHERE user_name = :user AND catalog_id IS NOT DISTINCT FROM CAST(:catalog_id AS bigint)
  AND schema_id IS NOT DISTINCT FROM CAST(:schema_id AS bigint)
  AND dataset_id IS NOT DISTINCT FROM CAST(:dataset_id AS bigint);

-- name: set
INSERT INTO lakeward.grants (user_name, role, granted_by, catalog_id, schema_id, dataset_id)
VALUES (:user, :role, :actor, CAST(:catalog_id AS bigint), CAST(:schema_id AS bigint), CAST(:dataset_id AS bigint))
ON CONFLICT ON CONSTRAINT grants_once
DO UPDATE SET role = EXCLUDED.role, granted_by = EXCLUDED.granted_by, granted_at = clock_timestamp();

-- name: remove
DELETE FROM lakeward.grants
WHERE user_name = :user AND catalog_id IS NOT DISTINCT FROM CAST(:catalog_id AS bigint)
  AND schema_id IS NOT DISTINCT FROM CAST(:schema_id AS bigint)
  AND dataset_id IS NOT DISTINCT FROM CAST(:dataset_id AS bigint);

-- name: other_admins
-- Of the whole workspace: they can say who may do what.
SELECT count(*) FROM lakeward.grants
WHERE role = 'admin' AND user_name <> :user AND num_nonnulls(catalog_id, schema_id, dataset_id) = 0;

-- name: all
SELECT g.user_name, g.role, g.granted_at, g.granted_by, lakeward.path_of(g.catalog_id, g.schema_id, g.dataset_id) AS path
FROM lakeward.grants g
WHERE (CAST(:user AS text) IS NULL OR g.user_name = :user) AND lakeward.path_of(g.catalog_id, g.schema_id, g.dataset_id) IS NOT NULL
ORDER BY g.user_name COLLATE "C", lakeward.path_of(g.catalog_id, g.schema_id, g.dataset_id) COLLATE "C";

-- name: of
SELECT g.role, lakeward.place_of(g.catalog_id, g.schema_id, g.dataset_id) AS place FROM lakeward.grants g
WHERE g.user_name = :user;
