-- name: line
INSERT INTO lakeward.audit_log (actor, action, subject, before, after)
VALUES (:actor, :action, :subject, CAST(:before AS jsonb), CAST(:after AS jsonb));

-- name: lines
-- Newest first. What the ledger has committed are changes, too: it has who opened each transaction, and needs no second line.
WITH found AS (
    SELECT a.at, a.actor, a.action, a.subject, a.before, a.after
    FROM lakeward.audit_log a
    WHERE (CAST(:actor AS text) IS NULL OR a.actor = :actor) AND (CAST(:subject AS text) IS NULL OR a.subject = :subject)
      AND (CAST(:action AS text) IS NULL OR a.action = :action OR a.action LIKE :action || '.%')
      AND (CAST(:since AS timestamptz) IS NULL OR a.at >= :since)
    UNION ALL
    SELECT t.committed_at, coalesce(t.actor, t.writer), 'dataset.' || t.kind, named.name,
           jsonb_build_object('version', t.parent_version),
           jsonb_strip_nulls(jsonb_build_object(
               'version', t.version, 'writer', t.writer, 'verb', t.verb, 'pipeline', t.pipeline, 'added', t.rows_added,
               'updated', t.rows_updated, 'deleted', t.rows_deleted, 'rows', t.row_count))
    FROM lakeward.dataset_transactions t JOIN lakeward.tree p ON p.level = 'dataset' AND p.id = t.dataset_id
    CROSS JOIN LATERAL (
        -- As `full_name` writes it.
        SELECT string_agg(CASE WHEN l.name ~ '[."]' OR l.name <> btrim(l.name) THEN '"' || replace(l.name, '"', '""') || '"'
                               ELSE l.name END, '.' ORDER BY l.place) AS name
        FROM unnest(p.path) WITH ORDINALITY AS l (name, place)) AS named
    WHERE t.status = 'committed' AND t.kind = 'write'
      AND (CAST(:actor AS text) IS NULL OR coalesce(t.actor, t.writer) = :actor)
      AND (CAST(:subject AS text) IS NULL OR named.name = :subject)
      AND (CAST(:action AS text) IS NULL OR 'dataset.' || t.kind = :action OR :action = 'dataset')
      AND (CAST(:since AS timestamptz) IS NULL OR t.committed_at >= :since)
)
SELECT at, actor, action, subject, before, after FROM found ORDER BY at DESC LIMIT :most;
