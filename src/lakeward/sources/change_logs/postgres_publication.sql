-- name: server
-- What decides whether its log can be followed.
SELECT CAST(current_setting('server_version_num') AS int) AS version, current_setting('server_encoding') AS encoding,
       current_setting('wal_level') AS wal_level, pg_catalog.pg_is_in_recovery() AS standby,
       current_setting('max_replication_slots') AS slots,
       (SELECT count(*) FROM pg_catalog.pg_replication_slots) AS slots_taken,
       current_user AS "user", pg_catalog.current_database() AS database,
       (SELECT r.rolsuper OR r.rolreplication FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) AS replicates;

-- name: tables
-- By name: what each table is, and by what the log tells which of its rows was changed: the key columns of each partition.
WITH wanted AS (
    SELECT w.schema, w.name FROM unnest(CAST(:schemas AS text[]), CAST(:names AS text[])) AS w (schema, name)
), kept AS (
    SELECT c.oid AS root, coalesce(p.relid, c.oid) AS oid
    FROM wanted w
    JOIN pg_catalog.pg_namespace n ON n.nspname = w.schema
    JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
    LEFT JOIN LATERAL pg_catalog.pg_partition_tree(c.oid) p ON p.isleaf
    WHERE c.relkind = 'r' OR p.relid IS NOT NULL
), identities AS (
    SELECT k.root, c.relname AS name, c.relreplident = 'f' AS whole,
           (SELECT coalesce(json_agg(a.attname ORDER BY a.attnum), '[]')
            FROM pg_catalog.pg_index i
            JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
            WHERE i.indrelid = c.oid AND i.indisvalid
              AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident END) AS columns
    FROM kept k JOIN pg_catalog.pg_class c ON c.oid = k.oid
)
SELECT n.nspname AS schema, c.relname AS name, CAST(c.oid AS bigint) AS oid,
       c.relkind IN ('r', 'p') AS is_table, c.relpersistence = 'p' AS logged,
       c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid) AS inherited,
       (SELECT coalesce(json_agg(a.attname ORDER BY a.attnum), '[]') FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attgenerated <> '' AND NOT a.attisdropped
          AND NOT (CAST(a.attgenerated AS text) = 's' AND CAST(current_setting('server_version_num') AS int) >= 180000)
       ) AS unlogged,
       (SELECT coalesce(json_agg(json_build_object('name', i.name, 'whole', i.whole, 'columns', i.columns)), '[]')
        FROM identities i WHERE i.root = c.oid) AS identities,
       EXISTS (SELECT FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
               WHERE r.prrelid = c.oid AND p.pubname = :publication) AS published
FROM wanted w
JOIN pg_catalog.pg_namespace n ON n.nspname = w.schema
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.name;

-- name: publication
-- What we noted of the slot; and whether the publication is as we made it. Row filters are there from version 15 on.
SELECT pg_catalog.obj_description(p.oid, 'pg_publication') AS note,
       p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate AND p.pubviaroot
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_publication_rel r
                       WHERE r.prpubid = p.oid AND to_jsonb(r) ->> 'prqual' IS NOT NULL) AS whole
FROM pg_catalog.pg_publication p
WHERE p.pubname = :name;

-- name: published
SELECT n.nspname AS schema, c.relname AS "table"
FROM pg_catalog.pg_publication p
JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid
JOIN pg_catalog.pg_class c ON c.oid = r.prrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = :name
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C";

-- name: columns
-- The types of columns as the log has them, which may be there no more, as `tables` of the connector tells those of now.
WITH RECURSIVE given AS (
    SELECT CAST(g.type AS oid) AS type, g.modifier, g.name, g.place
    FROM unnest(CAST(:types AS bigint[]), CAST(:modifiers AS int[]), CAST(:names AS text[])) WITH ORDINALITY
        AS g (type, modifier, name, place)
), bases AS (
    SELECT g.place, t.oid, t.typtype, t.typbasetype, t.typtypmod AS modifier
    FROM given g JOIN pg_catalog.pg_type t ON t.oid = g.type
    UNION ALL
    SELECT b.place, t.oid, t.typtype, t.typbasetype, greatest(b.modifier, t.typtypmod)
    FROM bases b JOIN pg_catalog.pg_type t ON t.oid = b.typbasetype
    WHERE b.typtype = 'd'
)
SELECT g.name, pg_catalog.format_type(g.type, g.modifier) AS native, coalesce(t.typname, '') AS typname,
       coalesce(CAST(t.typtype AS text), '') AS kind, greatest(g.modifier, b.modifier) AS modifier,
       CASE WHEN t.typcategory = 'A' THEN e.typname END AS element, CAST(e.typtype AS text) AS element_kind
FROM given g
LEFT JOIN bases b ON b.place = g.place AND b.typtype <> 'd'
LEFT JOIN pg_catalog.pg_type t ON t.oid = b.oid
LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem
ORDER BY g.place;
