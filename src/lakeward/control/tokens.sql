-- name: add
INSERT INTO lakeward.tokens
    (name, hash, kind, user_name, about, ceiling, made_by, parent_id, expires_at, catalog_id, schema_id, dataset_id)
VALUES (:name, :hash, :kind, :user, :about, :ceiling, :actor,
        (SELECT p.id FROM lakeward.tokens p WHERE p.name = :parent),
        CASE WHEN CAST(:seconds AS double precision) IS NOT NULL
             THEN clock_timestamp() + CAST(:seconds AS double precision) * interval '1 second' END,
        :catalog_id, :schema_id, :dataset_id)
RETURNING *;

-- name: principal
-- What a token that counts says, with the roles of its user: in one statement, asked for every request. That it was used is
-- written down at most once a minute; by its name alone, without the hash, it is not used.
WITH used AS (
    UPDATE lakeward.tokens SET used_at = clock_timestamp()
    WHERE name = :name AND hash = CAST(:hash AS bytea)
      AND (used_at IS NULL OR used_at < clock_timestamp() - interval '1 minute')
    RETURNING id
)
SELECT t.hash, t.kind, t.user_name, t.ceiling,
       coalesce((SELECT p.name FROM lakeward.tokens p WHERE p.id = t.parent_id),
                CASE WHEN t.kind = 'token' THEN t.name END) AS token,
       lakeward.place_of(t.catalog_id, t.schema_id, t.dataset_id) AS within,
       ARRAY(SELECT g.role FROM lakeward.grants g WHERE g.user_name = t.user_name ORDER BY g.id) AS roles,
       coalesce((SELECT jsonb_agg(lakeward.place_of(g.catalog_id, g.schema_id, g.dataset_id) ORDER BY g.id)
                 FROM lakeward.grants g WHERE g.user_name = t.user_name), '[]') AS places
FROM lakeward.tokens t
WHERE t.name = :name AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
  AND NOT EXISTS (SELECT 1 FROM lakeward.tokens p
                  WHERE p.id = t.parent_id AND (p.revoked_at IS NOT NULL OR p.expires_at <= clock_timestamp()));

-- name: all
SELECT t.*, lakeward.path_of(t.catalog_id, t.schema_id, t.dataset_id) AS path,
       t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp()) AS counts
FROM lakeward.tokens t
WHERE (CAST(:user AS text) IS NULL OR t.user_name = :user) AND (CAST(:name AS text) IS NULL OR t.name = :name)
  AND (CAST(:kind AS text) IS NULL OR t.kind = :kind)
ORDER BY t.id;

-- name: revoke
UPDATE lakeward.tokens SET revoked_at = clock_timestamp() WHERE name = :name AND revoked_at IS NULL RETURNING *;

-- name: end_session
-- By whoever has it.
UPDATE lakeward.tokens SET revoked_at = clock_timestamp()
WHERE name = :name AND hash = :hash AND kind = 'session' AND revoked_at IS NULL;

-- name: forget_sessions
-- Sessions that are over are of no more use; tokens stay, so that the log can be read.
DELETE FROM lakeward.tokens
WHERE kind = 'session' AND (revoked_at IS NOT NULL OR expires_at < clock_timestamp() - interval '1 day');
