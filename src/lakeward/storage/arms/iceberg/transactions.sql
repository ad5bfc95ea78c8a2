-- name: rename
UPDATE iceberg_tables SET table_namespace = :to_namespace, table_name = :to_name
WHERE catalog_name = :catalog AND table_namespace = :from_namespace AND table_name = :from_name;
