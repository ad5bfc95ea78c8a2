-- Datasets by where their Iceberg table is in its catalog, and the commits of their versions.

-- name: at
-- The live dataset whose table has that name, else whose table belongs there, else whose table was moved away from there.
WITH live AS (
    SELECT d.id, d.slug, d.iceberg_namespace, d.iceberg_table, d.unnumbered, d.home_namespace, d.home_table,
           ARRAY[c.slug, s.slug] AS slugs
    FROM lakeward.datasets d
    JOIN lakeward.schemas s ON s.id = d.schema_id
    JOIN lakeward.catalogs c ON c.id = s.catalog_id
    WHERE c.workspace_id = :workspace AND d.drop_id IS NULL
)
SELECT found.id FROM (
    SELECT l.id, 1 AS rank FROM live l
    WHERE coalesce(l.iceberg_table, l.slug) = :name
      AND coalesce(l.iceberg_namespace, CAST(:legacy AS text[])) = CAST(:namespace AS text[])
      AND (l.unnumbered OR EXISTS (SELECT 1 FROM lakeward.arm_versions a WHERE a.dataset_id = l.id AND a.arm = 'iceberg'))
    UNION ALL
    SELECT l.id, 2 FROM live l WHERE l.home_table = :name AND l.home_namespace = CAST(:namespace AS text[])
    UNION ALL
    SELECT l.id, 3 FROM live l
    WHERE l.home_table IS NULL AND l.slug = :name AND l.slugs = CAST(:namespace AS text[])
    UNION ALL
    SELECT l.id, 4 FROM lakeward.table_moves m JOIN live l ON l.id = m.dataset_id
    WHERE m.done_at IS NOT NULL AND m.from_table = :name AND m.from_namespace = CAST(:namespace AS text[])
) AS found ORDER BY found.rank, found.id DESC LIMIT 1;

-- name: commit
-- The transaction that made a version; `first`: the dataset had none before.
SELECT t.id, t.committed_at, t.row_count, held.snapshot_id,
       t.parent_version = 0 AS first
FROM lakeward.dataset_transactions t
LEFT JOIN lakeward.arm_versions held ON held.dataset_id = t.dataset_id AND held.version = t.version AND held.arm = 'iceberg'
WHERE t.dataset_id = :dataset_id AND t.version = :version AND t.status = 'committed';

-- name: version_of
-- Several versions have one snapshot where nothing of the table changed between them.
SELECT max(version) AS version FROM lakeward.readable_versions
WHERE dataset_id = :dataset_id AND arm = 'iceberg' AND snapshot_id = :snapshot_id;

-- name: set_home
UPDATE lakeward.datasets SET home_namespace = CAST(:home_namespace AS text[]), home_table = :home_table
WHERE id = :dataset_id;
