-- name: versions
-- The versions of one model, or of all, without their files.
SELECT name, version, format, sha256, size, entry, origin, features, outputs, added_at, added_by
FROM lakeward.models
WHERE CAST(:name AS text) IS NULL OR name = :name
ORDER BY name COLLATE "C", version;

-- name: lock
-- Until the end of the transaction: versions are numbered one after the other.
SELECT pg_advisory_xact_lock(hashtextextended('lakeward.models', 0));

-- name: store_file
INSERT INTO lakeward.model_files (sha256, content)
VALUES (:sha256, :content)
ON CONFLICT (sha256) DO NOTHING;

-- name: store
INSERT INTO lakeward.models (name, version, format, sha256, size, entry, origin, features, outputs, added_by)
VALUES (:name, :version, :format, :sha256, :size, :entry, :origin, CAST(:features AS jsonb), CAST(:outputs AS jsonb),
        :actor);

-- name: content
SELECT content FROM lakeward.model_files WHERE sha256 = :sha256;

-- name: audit
INSERT INTO lakeward.audit_log (actor, action, subject, before, after)
VALUES (:actor, 'model.add', :subject, NULL, CAST(:after AS jsonb));
