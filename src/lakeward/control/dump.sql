-- name: snapshot
-- What this transaction sees is what the dump has: the programs that write it are told its name.
SELECT pg_export_snapshot() AS name, current_setting('server_version_num')::integer AS server,
       (SELECT version_num FROM lakeward.alembic_version) AS revision, clock_timestamp() AS at;

-- name: heads
-- Every live dataset with its newest version and its checksum, and each Iceberg snapshot that can be read of it.
SELECT t.path AS name, d.uid::text AS uid, d.head_version AS version, d.row_count AS rows,
       CAST(d.digest_high AS text) AS digest_high, CAST(d.digest_low AS text) AS digest_low,
       coalesce((SELECT jsonb_object_agg(a.version, a.snapshot_id) FROM lakeward.readable_versions a
                 WHERE a.dataset_id = d.id AND a.arm = 'iceberg' AND a.snapshot_id IS NOT NULL), '{}') AS snapshots
FROM lakeward.datasets d JOIN lakeward.tree t ON t.level = 'dataset' AND t.id = d.id
WHERE d.drop_id IS NULL ORDER BY t.path COLLATE "C";

-- name: catalog_tables
-- The tables of an Iceberg catalog that is kept beside the workspace, as Spark's JDBC catalog has them, too.
SELECT c.oid::regclass::text AS name FROM pg_catalog.pg_class c
WHERE c.relname IN ('iceberg_tables', 'iceberg_namespace_properties') AND c.relkind = 'r'
  AND pg_catalog.pg_table_is_visible(c.oid)
ORDER BY c.relname;

-- name: there
-- Whether there is a workspace, and a catalog beside it.
SELECT to_regclass('lakeward.datasets') IS NOT NULL AS workspace, to_regclass('iceberg_tables') IS NOT NULL AS catalog,
       current_setting('server_version_num')::integer AS server;

-- name: datasets
SELECT count(*) AS n FROM lakeward.datasets;

-- name: tables
SELECT count(*) AS n FROM iceberg_tables;
