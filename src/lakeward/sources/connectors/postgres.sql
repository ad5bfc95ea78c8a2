-- name: tables
-- What can be read, with columns in order. Partitions are read by their parent.
WITH RECURSIVE bases AS (
    SELECT t.oid AS declared, t.oid, t.typtype, t.typbasetype, t.typtypmod AS modifier
    FROM pg_catalog.pg_type t
    UNION ALL
    SELECT b.declared, t.oid, t.typtype, t.typbasetype, greatest(b.modifier, t.typtypmod)
    FROM bases b JOIN pg_catalog.pg_type t ON t.oid = b.typbasetype
    WHERE b.typtype = 'd'
)
SELECT n.nspname AS schema, c.relname AS name,
       CASE WHEN c.reltuples < 0 THEN NULL ELSE CAST(c.reltuples AS bigint) END AS rows,
       c.relkind = 'p' OR (c.relkind = 'r' AND m.amname = 'heap') AS followed,
       (SELECT coalesce(json_agg(json_build_object(
                   'name', a.attname, 'native', pg_catalog.format_type(a.atttypid, a.atttypmod),
                   'typname', t.typname, 'kind', t.typtype, 'modifier', greatest(a.atttypmod, b.modifier),
                   'element', CASE WHEN t.typcategory = 'A' THEN e.typname END, 'element_kind', e.typtype)
               ORDER BY a.attnum), '[]')
        FROM pg_catalog.pg_attribute a
        JOIN bases b ON b.declared = a.atttypid AND b.typtype <> 'd'
        JOIN pg_catalog.pg_type t ON t.oid = b.oid
        LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
       (SELECT coalesce(json_agg(a.attname ORDER BY k.position), '[]')
        FROM pg_catalog.pg_index i
        CROSS JOIN LATERAL unnest(CAST(i.indkey AS smallint[])) WITH ORDINALITY AS k (attnum, position)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
        WHERE i.indrelid = c.oid AND i.indisprimary AND k.position <= i.indnkeyatts) AS primary_key
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
  AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C";

-- name: server
SELECT CAST(current_setting('server_version_num') AS int) AS version, current_setting('server_encoding') AS encoding;
